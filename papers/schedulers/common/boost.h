/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The worth of a missed deadline notification where it raises a task's quantum: linux24 and berate.
 *
 * Section 3.1 of "Missed Deadline Notification in Best-effort Schedulers". A task's block ratio is
 * the average part of time that it spends out of the run queue. A notification adds to mdn_nice in
 * proportion to it, up to a limit in proportion to its square, and mdn_nice goes back to zero with
 * time, the faster the lower the ratio is: only a task that uses the CPU sparingly can keep a
 * boost, and one that never blocks gets none. The limit and its square are ours: without them a
 * program that wants far more than its share (Fig. 7 (a)) keeps most of what it can get.
 *
 * The ratio here is averaged over time, not over wakeups, and is brought up to date whenever it is
 * used. Averaged over wakeups, it would stay where it was in a task that wakes no more because it
 * has become CPU-bound.
 */
#ifndef ONBEAT_BOOST_H
#define ONBEAT_BOOST_H

#include "policy.h"

/* One, as a ratio and as a part of a quantum. */
#define BOOST_ONE (1ULL << 20)
/* The shortest time whose effect is not rounded away. */
#define BOOST_LEAST_NS (1ULL << 17)
/* No boost is longer than this many quanta. */
#define BOOST_MOST_QUANTA 16

struct boost_params {
	/* The time over which the block ratio is averaged. */
	u64 average_ns;
	/*
	 * The worth of one notification at a block ratio of one, as part of the task's own quantum.
	 */
	u64 step;
	/*
	 * The most that notifications can add at a block ratio of one, as part of the task's own
	 * quantum.
	 */
	u64 most;
	/*
	 * How long the boost of a whole quantum lasts at a block ratio of one; at most four
	 * minutes.
	 */
	u64 decay_ns;
};

struct boost {
	/* The average part of time out of the run queue, of BOOST_ONE. */
	u64 block_ratio;
	/* Up to when it has been counted. */
	u64 counted_ns;
	/* mdn_nice: the quantum is longer by this part of it. */
	u64 extra;
	/* Up to when the extra has decayed. */
	u64 decayed_ns;
};

static inline void boost_join(struct boost *boost, u64 now_ns)
{
	boost->block_ratio = 0;
	boost->counted_ns = now_ns;
	boost->extra = 0;
	boost->decayed_ns = now_ns;
}

/* Counts the time up to now, all of which the task spent in the run queue or all of it outside. */
static inline void boost_count(const struct boost_params *params, struct boost *boost, bool blocked,
			       u64 now_ns)
{
	u64 over = policy_max(params->average_ns, 1);
	u64 span = policy_min(policy_minus(now_ns, boost->counted_ns), over);

	boost->counted_ns = now_ns;
	if (blocked) {
		boost->block_ratio += (BOOST_ONE - boost->block_ratio) * span / over;
	} else {
		/* Rounded up, so that it comes to zero. */
		u64 less = (boost->block_ratio * span + over - 1) / over;

		boost->block_ratio = policy_minus(boost->block_ratio, less);
	}
}

/* The most that the extra can be at the present ratio. */
static inline u64 boost_limit(const struct boost_params *params, const struct boost *boost)
{
	u64 most = policy_min(params->most, BOOST_MOST_QUANTA * BOOST_ONE);

	return most * boost->block_ratio / BOOST_ONE * boost->block_ratio / BOOST_ONE;
}

/*
 * Lets the extra decay up to now, at the ratio as it is; it is never more than the ratio is worth.
 */
static inline void boost_decay(const struct boost_params *params, struct boost *boost, u64 now_ns)
{
	u64 span = policy_minus(now_ns, boost->decayed_ns);
	u64 lasts = policy_max(params->decay_ns / BOOST_ONE * boost->block_ratio, 1);

	boost->extra = policy_min(boost->extra, boost_limit(params, boost));
	/* It would be rounded to nothing; a flood of notifications must not stop the decay. */
	if (span < BOOST_LEAST_NS)
		return;
	boost->decayed_ns = now_ns;
	if (span / lasts >= BOOST_MOST_QUANTA)
		boost->extra = 0;
	else
		boost->extra = policy_minus(boost->extra, BOOST_ONE * span / lasts);
}

/*
 * A notification, by a task that is in the run queue. False: its block ratio makes it worth
 * nothing.
 */
static inline bool boost_notified(const struct boost_params *params, struct boost *boost,
				  u64 now_ns)
{
	u64 more;

	if (policy_minus(now_ns, boost->counted_ns) >= BOOST_LEAST_NS)
		boost_count(params, boost, false, now_ns);
	boost_decay(params, boost, now_ns);
	more = params->step * boost->block_ratio / BOOST_ONE;
	boost->extra = policy_min(boost->extra + more, boost_limit(params, boost));
	return more > 0;
}

static inline u64 boost_quantum(const struct boost *boost, u64 quantum)
{
	return quantum + (quantum * boost->extra + BOOST_ONE / 2) / BOOST_ONE;
}

#endif
