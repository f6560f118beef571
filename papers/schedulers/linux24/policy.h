/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The scheduler of Linux 2.2 to 2.4, with missed deadline notifications: section 3.1 of "Missed
 * Deadline Notification in Best-effort Schedulers".
 *
 * A task has a counter of clock ticks. The ready task with the greatest counter runs; each tick
 * that it runs takes one off. When all that are ready have spent theirs, every task in the system,
 * asleep or not, gets
 *
 *	counter = counter / 2 + quantum + mdn_nice
 *
 * where the quantum is what its nice is worth in ticks (the paper calls it nice). So a task that
 * slept has more than one that ran, and goes first; and a notification makes the next counters
 * greater, for a while (boost.h).
 *
 * No walk over all tasks is needed for that. The machine counts its recomputations (the epoch), and
 * a task makes up for those that it missed when it is next looked at. A ready task that is spent
 * stands in line with the counter of the next epoch, behind all that have some left in this one;
 * picking the first such task is the recomputation.
 *
 * A child has half of its parent's counter, and what is left of that half goes back when it ends:
 * else a chain of short children would always stand before who has spent its own. Other than in
 * Linux, what recomputations gave the child does not go back: sleeping children would save it up
 * for their parent.
 */
#ifndef ONBEAT_LINUX24_POLICY_H
#define ONBEAT_LINUX24_POLICY_H

#include "../common/boost.h"

/*
 * After this many recomputations in a row, another one changes no counter below LINUX24_MOST_TICKS.
 */
#define LINUX24_SETTLED 12
#define LINUX24_MOST_TICKS 2047ULL

struct linux24_params {
	/* How often the clock ticks. */
	u64 tick_ns;
	/* The quantum at nice 0. */
	u64 quantum_ns;
	/* Notifications are listened to: 0 or 1. */
	u64 mdn;
	struct boost_params boost;
};

/*
 * The values of 2.4 where the clock ticks at 100 Hz, as on the paper's machines. The paper
 * describes the boost, but gives no numbers: these are ours.
 */
#define LINUX24_PARAMS_DEFAULT                                                                   \
	{                                                                                        \
		.tick_ns = 10 * POLICY_NS_PER_MS, .quantum_ns = 60 * POLICY_NS_PER_MS, .mdn = 1, \
		.boost = { .average_ns = 400 * POLICY_NS_PER_MS,                                 \
			   .step = 8 * BOOST_ONE,                                                \
			   .most = 8 * BOOST_ONE,                                                \
			   .decay_ns = 120000 * POLICY_NS_PER_MS },                              \
	}

struct linux24_machine {
	/* How often the counters have been recomputed. */
	u64 epoch;
};

struct linux24_task {
	/* The epoch that the counter is of: the machine's, an earlier one, or the next. */
	u64 epoch;
	u64 counter;
	/* Ticks that nice is worth. */
	u64 quantum;
	/* The part of the counter that is its parent's. */
	u64 given;
	/*
	 * How much its children gave back, which they add to at any time, and how much of that it
	 * has taken.
	 */
	u64 returned;
	u64 taken;
	struct boost boost;
};

/* Twice the quantum of nice 0 at -20, next to nothing at 19, and a tick at least. */
static inline void linux24_renice(const struct linux24_params *params,
				  struct linux24_machine *machine, struct linux24_task *task,
				  s32 nice)
{
	u64 worth = nice > 19 ? 1 : nice < -20 ? 40 : (u64)(20 - nice);
	u64 ns = params->quantum_ns / 20 * worth;
	u64 ticks = ns / policy_max(params->tick_ns, 1);

	task->quantum =
		policy_min(policy_max(ticks, 1), LINUX24_MOST_TICKS / 2 / (1 + BOOST_MOST_QUANTA));
}

static inline u64 linux24_refill(const struct linux24_task *task)
{
	return boost_quantum(&task->boost, task->quantum);
}

/* Takes what children gave back; but no more than a task that sleeps has. */
static inline void linux24_take_back(struct linux24_task *task)
{
	u64 returned = task->returned;
	u64 counter = task->counter + (returned - task->taken);

	task->taken = returned;
	task->counter = policy_max(task->counter, policy_min(counter, 2 * linux24_refill(task)));
}

/* Recomputes the counter as often as the machine did since it was last looked at. */
static inline void linux24_catch_up(const struct linux24_machine *machine,
				    struct linux24_task *task)
{
	u64 missed = policy_min(policy_minus(machine->epoch, task->epoch), LINUX24_SETTLED);
	u64 refill = linux24_refill(task);
	u32 n;

	for (n = 0; n < LINUX24_SETTLED; n++) {
		if (n < missed)
			task->counter = task->counter / 2 + refill;
	}
	task->given >>= missed;
	task->epoch = policy_max(task->epoch, machine->epoch);
	linux24_take_back(task);
}

static inline void linux24_line_up(const struct linux24_machine *machine, struct linux24_task *task)
{
	linux24_catch_up(machine, task);
	if (task->counter == 0) {
		task->counter = linux24_refill(task);
		task->epoch += 1;
	}
}

static inline void linux24_join(const struct linux24_params *params,
				struct linux24_machine *machine, struct linux24_task *task,
				s32 nice, u64 now_ns)
{
	linux24_renice(params, machine, task, nice);
	boost_join(&task->boost, now_ns);
	task->epoch = machine->epoch;
	task->counter = task->quantum;
	task->given = 0;
	task->returned = 0;
	task->taken = 0;
}

/* The parent, which runs, has a child, which has joined. */
static inline void linux24_fork(const struct linux24_params *params,
				struct linux24_machine *machine, struct linux24_task *parent,
				struct linux24_task *child)
{
	linux24_catch_up(machine, parent);
	child->epoch = parent->epoch;
	child->counter = child->given = (parent->counter + 1) / 2;
	parent->counter /= 2;
	linux24_line_up(machine, child);
}

/* The child, which runs, ends. The rest of its work is not worth a tick. */
static inline void linux24_exit(const struct linux24_params *params,
				struct linux24_machine *machine, struct linux24_task *child,
				struct linux24_task *parent)
{
	linux24_catch_up(machine, child);
	policy_add(&parent->returned, policy_min(child->given, child->counter));
}

static inline void linux24_leave(const struct linux24_params *params,
				 struct linux24_machine *machine, struct linux24_task *task)
{
}

static inline void linux24_wakeup(const struct linux24_params *params,
				  struct linux24_machine *machine, struct linux24_task *task,
				  u64 now_ns)
{
	boost_count(&params->boost, &task->boost, true, now_ns);
	boost_decay(&params->boost, &task->boost, now_ns);
	linux24_line_up(machine, task);
}

static inline void linux24_block(const struct linux24_params *params,
				 struct linux24_machine *machine, struct linux24_task *task,
				 u64 now_ns)
{
	boost_count(&params->boost, &task->boost, false, now_ns);
	linux24_catch_up(machine, task);
}

static inline void linux24_pick(const struct linux24_params *params,
				struct linux24_machine *machine, struct linux24_task *task,
				u64 now_ns)
{
	/* It is of the machine's epoch or the next one. */
	if (task->epoch > machine->epoch)
		policy_replace(&machine->epoch, task->epoch - 1, task->epoch);
}

/*
 * It has run for `ran_ns` up to now. The task that runs when the clock ticks is charged for the
 * whole tick.
 */
static inline void linux24_charge(const struct linux24_params *params,
				  struct linux24_machine *machine, struct linux24_task *task,
				  u64 ran_ns, u64 now_ns)
{
	u64 tick_ns = policy_max(params->tick_ns, 1);
	u64 ticks = now_ns / tick_ns - policy_minus(now_ns, ran_ns) / tick_ns;

	linux24_catch_up(machine, task);
	task->counter = policy_minus(task->counter, ticks);
}

static inline bool linux24_tick(const struct linux24_params *params,
				struct linux24_machine *machine, struct linux24_task *task,
				u64 now_ns)
{
	return task->counter == 0;
}

static inline bool linux24_keeps_place(const struct linux24_task *task)
{
	return true;
}

static inline void linux24_put_back(const struct linux24_params *params,
				    struct linux24_machine *machine, struct linux24_task *task,
				    u64 behind, u64 now_ns)
{
	boost_count(&params->boost, &task->boost, false, now_ns);
	boost_decay(&params->boost, &task->boost, now_ns);
	linux24_line_up(machine, task);
}

static inline u64 linux24_key(const struct linux24_params *params,
			      const struct linux24_machine *machine,
			      const struct linux24_task *task, u64 now_ns)
{
	return (task->epoch << 16) + LINUX24_MOST_TICKS + 1 - task->counter;
}

/* Until the tick that takes the last off its counter. */
static inline u64 linux24_slice(const struct linux24_params *params,
				const struct linux24_machine *machine,
				const struct linux24_task *task, u64 now_ns)
{
	u64 tick_ns = policy_max(params->tick_ns, 1);

	return policy_max(task->counter, 1) * tick_ns - now_ns % tick_ns;
}

static inline bool linux24_mdn(const struct linux24_params *params, struct linux24_machine *machine,
			       struct linux24_task *task, u64 now_ns)
{
	return params->mdn && boost_notified(&params->boost, &task->boost, now_ns);
}

#endif
