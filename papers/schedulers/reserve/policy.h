/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Group reservations: a constant bandwidth server for a process with all its threads, or for a
 * control group.
 *
 * The server is that of Abeni and Buttazzo (RTSS 1998) with hard reservations, as SCHED_DEADLINE
 * has it for one thread: earliest deadline first, and a thread that has used up the budget waits
 * for the next period. The new part is that several threads, on several CPUs at a time, live on one
 * budget. So a CPU does not look at the budget while it runs: it takes a portion of it before, and
 * hands back what it did not use after. All portions together are never more than the budget,
 * however many CPUs run.
 *
 * In any window of length t, on m CPUs, a group with runtime Q and period T executes at most t Q/T
 * + 2 Q (1 - Q/(T m)), as a server of one thread does; and t Q/T + 3 Q if, for want of CPU time, a
 * deadline passes with budget left.
 *
 * Times are nanoseconds. A period is at most RESERVE_LONGEST_PERIOD_NS, so that products of two
 * times fit 64 bits.
 */
#ifndef ONBEAT_RESERVE_POLICY_H
#define ONBEAT_RESERVE_POLICY_H

#include "../common/policy.h"

#define RESERVE_LONGEST_PERIOD_NS (4ULL * 1000 * 1000 * 1000)
/*
 * Overruns beyond this many runtimes are forgiven, so that no group waits for longer than a few
 * periods.
 */
#define RESERVE_DEBT_RUNTIMES 2
#define RESERVE_WEIGHT 100

struct reserve_params {
	/*
	 * The most that a CPU takes from a budget at once. Short: many CPUs can run a group, each
	 * with a part of its budget; long: fewer interruptions.
	 */
	u64 portion_ns;
	/*
	 * How long a task without a reservation runs before the next one does, and a thread of a
	 * group before another one of it that waits.
	 */
	u64 slice_ns;
};

/*
 * A group. Its runtime is 0 if the slot is free; else deadline <= period <=
 * RESERVE_LONGEST_PERIOD_NS, and runtime too, which may be more than the deadline if several CPUs
 * are to give it.
 */
struct reserve_group {
	u64 runtime_ns;
	u64 deadline_ns;
	u64 period_ns;
	/* The rest of the budget, with the portions that are out. */
	u64 left_ns;
	u64 out_ns;
	/* The use beyond the budget. */
	u64 debt_ns;
	u64 deadline;
	/* The budget is used up until then; 0 if it is not. */
	u64 replenish_at;
	u64 ready;
	u64 used_ns;
	u64 exhausted;
};

/* A task without a reservation: they share what is left by weight. */
struct reserve_rest {
	/* The time that it has run, divided by its weight. */
	u64 passed_ns;
};

/*
 * How far a task stands behind the first in line at most. Where tasks may not run everywhere, those
 * of a CPU with few others get far ahead of those of one with many, and a task that came to these
 * then would wait for all of that.
 */
#define RESERVE_REST_BEHIND_NS (1000 * POLICY_NS_PER_MS)

#define RESERVE_PARAMS_DEFAULT                                                   \
	{                                                                        \
		.portion_ns = POLICY_NS_PER_MS, .slice_ns = 4 * POLICY_NS_PER_MS \
	}

static inline void reserve_begin(struct reserve_group *group, u64 from)
{
	group->replenish_at = 0;
	group->left_ns = group->runtime_ns;
	group->debt_ns = 0;
	group->deadline = from + group->deadline_ns;
}

static inline u64 reserve_next_period(const struct reserve_group *group)
{
	return group->deadline + group->period_ns - group->deadline_ns;
}

/*
 * Gives the group a reservation, or changes the one it has: then the present deadline stays, and no
 * more is left than the new one gives.
 */
static inline void reserve_set(struct reserve_group *group, u64 runtime_ns, u64 deadline_ns,
			       u64 period_ns, u64 now)
{
	bool is_new = group->runtime_ns == 0;

	group->runtime_ns = runtime_ns;
	group->deadline_ns = deadline_ns;
	group->period_ns = period_ns;
	if (is_new) {
		reserve_begin(group, now);
	} else {
		group->left_ns = policy_min(group->left_ns, runtime_ns);
	}
}

static inline void reserve_clear(struct reserve_group *group)
{
	group->runtime_ns = 0;
	group->left_ns = 0;
	group->debt_ns = 0;
	group->replenish_at = 0;
}

static inline bool reserve_overflows(const struct reserve_group *group, u64 now)
{
	u64 room_ns = policy_min(group->deadline - now, group->deadline_ns);

	return group->left_ns * group->deadline_ns > room_ns * group->runtime_ns;
}

/*
 * A thread of the group wants to run. The first one to do so begins a new period, unless budget and
 * deadline of the present one can be kept without exceeding the bandwidth. Answers when the group
 * may run: 0, at once.
 */
static inline u64 reserve_wake(struct reserve_group *group, u64 now)
{
	group->ready++;
	if (group->ready > 1 || group->replenish_at) {
		return group->replenish_at;
	}
	if (now >= reserve_next_period(group)) {
		reserve_begin(group, now);
	} else if (group->deadline <= now || reserve_overflows(group, now)) {
		if (group->deadline_ns == group->period_ns) {
			reserve_begin(group, now);
			return 0;
		}
		/*
		 * A constrained deadline, and the period is not over: a new one now would be twice
		 * the bandwidth. The rest is as much as the density allows until the deadline: the
		 * revised wakeup rule.
		 */
		group->left_ns =
			policy_minus(group->deadline, now) * group->runtime_ns / group->deadline_ns;
		if (!group->left_ns) {
			group->replenish_at = reserve_next_period(group);
		}
	}
	return group->replenish_at;
}

static inline void reserve_block(struct reserve_group *group)
{
	if (group->ready) {
		group->ready--;
	}
}

static inline u64 reserve_available(const struct reserve_group *group)
{
	if (group->replenish_at || group->left_ns <= group->out_ns) {
		return 0;
	}
	return group->left_ns - group->out_ns;
}

/*
 * A CPU takes a portion of the budget, and may run a thread of the group for the returned time. 0:
 * none is left.
 */
static inline u64 reserve_take(const struct reserve_params *params, struct reserve_group *group)
{
	u64 portion_ns = policy_min(reserve_available(group), params->portion_ns);

	group->out_ns += portion_ns;
	return portion_ns;
}

/* The next budget, less what was overrun. A group that fell behind does not get what it missed. */
static inline void reserve_replenish(struct reserve_group *group, u64 now)
{
	u64 runtime_ns = policy_max(group->runtime_ns, 1);
	u64 debt_ns = policy_min(group->debt_ns, RESERVE_DEBT_RUNTIMES * runtime_ns);
	u64 periods = debt_ns / runtime_ns + 1;

	group->replenish_at = 0;
	group->left_ns = periods * runtime_ns - debt_ns;
	group->debt_ns = 0;
	group->deadline += periods * group->period_ns;
	if (group->deadline < now) {
		reserve_begin(group, now);
	}
}

/*
 * A CPU hands its portion back, having run for `used_ns`. Answers when the budget is replenished,
 * if it is used up now; else 0.
 */
static inline u64 reserve_return(struct reserve_group *group, u64 portion_ns, u64 used_ns, u64 now)
{
	group->out_ns -= policy_min(portion_ns, group->out_ns);
	group->used_ns += used_ns;
	if (used_ns < group->left_ns) {
		group->left_ns -= used_ns;
		return 0;
	}
	group->debt_ns += used_ns - group->left_ns;
	group->left_ns = 0;
	if (group->replenish_at) {
		return group->replenish_at;
	}
	group->exhausted++;
	if (reserve_next_period(group) <= now) {
		reserve_replenish(group, now);
	} else {
		group->replenish_at = reserve_next_period(group);
	}
	return group->replenish_at;
}

/* The timer for `replenish_at` has fired. Answers whether the group may run again. */
static inline bool reserve_timer(struct reserve_group *group, u64 now)
{
	if (!group->replenish_at || now < group->replenish_at) {
		return false;
	}
	reserve_replenish(group, now);
	return true;
}

/*
 * A task without a reservation wants to run: it has not gained by having slept, but for one slice.
 * `virtual_ns` is the machine's virtual time. Its place among the others is `passed_ns`, the least
 * first.
 */
static inline void reserve_rest_wake(const struct reserve_params *params, struct reserve_rest *rest,
				     u64 virtual_ns)
{
	rest->passed_ns = policy_max(rest->passed_ns, policy_minus(virtual_ns, params->slice_ns));
}

/* It stands in line, the first of which has passed `first_ns`. */
static inline void reserve_rest_stand(struct reserve_rest *rest, u64 first_ns)
{
	rest->passed_ns = policy_min(rest->passed_ns, first_ns + RESERVE_REST_BEHIND_NS);
}

static inline void reserve_rest_charge(struct reserve_rest *rest, u64 weight, u64 ran_ns)
{
	rest->passed_ns += ran_ns * RESERVE_WEIGHT / policy_max(weight, 1);
}

#endif
