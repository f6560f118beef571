/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * BeRate, with missed deadline notifications: section 3.3 of "Missed Deadline Notification in
 * Best-effort Schedulers".
 *
 * A task has a quantum q by its nice. Its computing from one blocking to the next, or until a
 * quantum is over, is averaged to e. L is the sum of all tasks' quanta. If the task had just its
 * fair share of the CPU, e would take it
 *
 *	p = e L / q
 *
 * That far from now is its deadline, whenever it wakes or ends a quantum; the earliest runs. The
 * deadline of a task that never blocks is postponed whenever it is preempted. Notifications make q
 * longer for a while (boost.h), and so the deadline earlier.
 *
 * The paper does not say how far it is postponed (4.3). With `postpone_freely` it is by a whole
 * period each time, without a bound. Then an interruption of microseconds, by a thread of the
 * kernel, costs a task its turn if another one stands in line. A chain of short children, each of
 * which has the kernel's RCU thread run every 4 ms, so nearly starves a CPU-bound task. Without
 * `postpone_freely` no task overtakes the preempted one that already stands behind it; tasks that
 * become ready later do.
 *
 * The paper's L is of all tasks, and q / L a fair share: so of all that want the CPU. Here a task
 * is part of it until it ends, or has run for next to nothing for two to four seconds; of more
 * CPU-bound tasks than have their turns in two (33 on one CPU), L counts those that had. With the
 * shells, daemons and threads of the kernel of a whole system in L, the deadlines of CPU-bound
 * tasks would be so late that they hardly count.
 */
#ifndef ONBEAT_BERATE_POLICY_H
#define ONBEAT_BERATE_POLICY_H

#include "../common/boost.h"
#include "../common/windows.h"

struct berate_params {
	u64 quantum_ns;
	/* Notifications are listened to: 0 or 1. */
	u64 mdn;
	/* One sample moves the average by one part of this many. */
	u64 inertia;
	/* Each preemption postpones a deadline by a whole period: 0 or 1. */
	u64 postpone_freely;
	struct boost_params boost;
};

/* The quantum is that of Linux 2.4; the paper does not say how e and the boost are averaged. */
#define BERATE_PARAMS_DEFAULT                                                                      \
	{                                                                                          \
		.quantum_ns = 60 * POLICY_NS_PER_MS, .mdn = 1, .inertia = 2, .postpone_freely = 0, \
		.boost = { .average_ns = 500 * POLICY_NS_PER_MS,                                   \
			   .step = 2 * BOOST_ONE,                                                  \
			   .most = 4 * BOOST_ONE,                                                  \
			   .decay_ns = 6000 * POLICY_NS_PER_MS },                                  \
	}

/* The load is counted in windows of this time. */
#define BERATE_WINDOW_NS (2000 * POLICY_NS_PER_MS)
/*
 * A task that runs for one part in this many of its quantum in a window wants the CPU: 4 ms of two
 * seconds.
 */
#define BERATE_NOTEWORTHY 16

/*
 * A task that never blocks has its deadline postponed to this many periods after its last quantum,
 * and no more: else tasks that preempt it for a moment again and again, a kernel's thread or a
 * child that has just begun, would keep it from the CPU for ever.
 */
#define BERATE_POSTPONED_MOST 2

struct berate_machine {
	/* The number of the present window, from one. Zero: there was none. */
	u64 window;
	/*
	 * The sum of the quanta of all tasks that have run for a noteworthy time in a window, by
	 * its number.
	 */
	u64 loads_ns[WINDOWS];
};

struct berate_task {
	/* q without what notifications add. */
	u64 quantum_ns;
	/* The last window in which it was in the run queue. */
	u64 window;
	/* The time that it has run since the next was brought up to date. */
	u64 uncounted_ns;
	/* For how long it ran in that window. */
	u64 window_ran_ns;
	/* The quantum with which it is part of that window's load, if it is. */
	u64 counted_ns;
	/* The average of e. */
	u64 mean_ns;
	/* The time that it has computed since it last blocked or ended a quantum. */
	u64 ran_ns;
	u64 deadline_ns;
	/* How many quanta it has ended since it last blocked, and when the last one. */
	u64 rounds;
	u64 ended_ns;
	struct boost boost;
};

/* Twice the quantum of nice 0 at -20, next to nothing at 19. */
static inline u64 berate_quantum(const struct berate_params *params, s32 nice)
{
	u64 worth = nice > 19 ? 1 : nice < -20 ? 40 : (u64)(20 - nice);

	return policy_max(params->quantum_ns / 20 * worth, 1000);
}

/*
 * The task wakes up, or has run until now. A task that has had a noteworthy part of its quantum in
 * a window is part of the load.
 */
static inline void berate_count(struct berate_machine *machine, struct berate_task *task,
				u64 now_ns)
{
	u64 window = windows_at(&machine->window, machine->loads_ns, BERATE_WINDOW_NS, now_ns);

	if (window > task->window) {
		task->window = window;
		task->window_ran_ns = task->counted_ns = 0;
	}
	task->window_ran_ns += task->uncounted_ns;
	task->uncounted_ns = 0;
	if (task->counted_ns > 0 || task->window_ran_ns < task->quantum_ns / BERATE_NOTEWORTHY)
		return;
	task->counted_ns = task->quantum_ns;
	policy_add(windows_sum(machine->loads_ns, window), task->counted_ns);
}

/* The load has its quantum from the next window on. */
static inline void berate_renice(const struct berate_params *params, struct berate_machine *machine,
				 struct berate_task *task, s32 nice)
{
	task->quantum_ns = berate_quantum(params, nice);
}

/* A child begins with a rate of its own. */
POLICY_OF_STRANGERS(berate)

/*
 * It is no part of the load any more: else children that come and go by the hundred would put off
 * who never blocks by as many quanta. The window before has it until that is over.
 */
static inline void berate_leave(const struct berate_params *params, struct berate_machine *machine,
				struct berate_task *task)
{
	windows_take_off(machine->window, machine->loads_ns, task->window, task->counted_ns);
	/* It is counted again if it comes back. */
	task->counted_ns = 0;
}

/*
 * L for this task, which is part of it: a window that has only begun does not know all tasks yet.
 */
static inline u64 berate_load(const struct berate_machine *machine, const struct berate_task *task)
{
	u64 present_ns = machine->loads_ns[machine->window & (WINDOWS - 1)];
	u64 before_ns = machine->loads_ns[(machine->window - 1) & (WINDOWS - 1)];

	if (task->counted_ns == 0)
		present_ns += task->quantum_ns;
	return policy_max(policy_max(present_ns, before_ns), task->quantum_ns);
}

/*
 * The paper's p_est, with the boosted quantum in q and in L. In microseconds, for the product to
 * fit.
 */
static inline u64 berate_period(const struct berate_machine *machine,
				const struct berate_task *task)
{
	u64 boosted_ns = boost_quantum(&task->boost, task->quantum_ns);
	u64 load_us = (berate_load(machine, task) + boosted_ns - task->quantum_ns) / 1000;

	return task->mean_ns / 1000 * load_us / policy_max(boosted_ns / 1000, 1) * 1000;
}

static inline void berate_join(const struct berate_params *params, struct berate_machine *machine,
			       struct berate_task *task, s32 nice, u64 now_ns)
{
	berate_renice(params, machine, task, nice);
	task->window = task->uncounted_ns = task->window_ran_ns = task->counted_ns = 0;
	task->mean_ns = task->quantum_ns;
	task->ran_ns = 0;
	task->rounds = 0;
	task->ended_ns = now_ns;
	boost_join(&task->boost, now_ns);
	/* If it came first, a task that starts one child after the other would have the CPU. */
	task->deadline_ns = now_ns + berate_period(machine, task);
}

static inline void berate_sample(const struct berate_params *params, struct berate_task *task)
{
	u64 inertia = policy_max(params->inertia, 1);

	if (task->ran_ns > task->mean_ns)
		task->mean_ns += (task->ran_ns - task->mean_ns) / inertia;
	else
		task->mean_ns -= (task->mean_ns - task->ran_ns) / inertia;
	task->ran_ns = 0;
}

static inline void berate_wakeup(const struct berate_params *params, struct berate_machine *machine,
				 struct berate_task *task, u64 now_ns)
{
	boost_count(&params->boost, &task->boost, true, now_ns);
	boost_decay(&params->boost, &task->boost, now_ns);
	berate_count(machine, task, now_ns);
	task->deadline_ns = now_ns + berate_period(machine, task);
}

static inline void berate_block(const struct berate_params *params, struct berate_machine *machine,
				struct berate_task *task, u64 now_ns)
{
	boost_count(&params->boost, &task->boost, false, now_ns);
	berate_count(machine, task, now_ns);
	berate_sample(params, task);
	task->rounds = 0;
}

static inline void berate_pick(const struct berate_params *params, struct berate_machine *machine,
			       struct berate_task *task, u64 now_ns)
{
}

static inline void berate_charge(const struct berate_params *params, struct berate_machine *machine,
				 struct berate_task *task, u64 ran_ns, u64 now_ns)
{
	task->ran_ns += ran_ns;
	task->uncounted_ns += ran_ns;
}

static inline bool berate_tick(const struct berate_params *params, struct berate_machine *machine,
			       struct berate_task *task, u64 now_ns)
{
	return task->ran_ns >= task->quantum_ns;
}

/*
 * A task that comes before all of ours takes its CPU for a moment: whether it goes on first then. A
 * task that never blocks has its deadline postponed whenever it is preempted (section 4.3).
 */
static inline bool berate_keeps_place(const struct berate_task *task)
{
	return task->rounds == 0;
}

static inline void berate_put_back(const struct berate_params *params,
				   struct berate_machine *machine, struct berate_task *task,
				   u64 behind, u64 now_ns)
{
	bool is_over = berate_tick(params, machine, task, now_ns);
	u64 period_ns, most_ns;

	boost_count(&params->boost, &task->boost, false, now_ns);
	boost_decay(&params->boost, &task->boost, now_ns);
	berate_count(machine, task, now_ns);
	if (is_over) {
		berate_sample(params, task);
		task->rounds += 1;
		task->ended_ns = now_ns;
	} else if (task->rounds == 0) {
		return;
	}
	period_ns = berate_period(machine, task);
	task->deadline_ns = now_ns + period_ns;
	if (is_over || params->postpone_freely)
		return;
	most_ns = task->ended_ns + BERATE_POSTPONED_MOST * period_ns;
	/* Its key, which is one more, stays less than the one behind. */
	most_ns = policy_min(most_ns, policy_minus(behind, 2));
	task->deadline_ns = policy_min(task->deadline_ns, most_ns);
}

static inline u64 berate_key(const struct berate_params *params,
			     const struct berate_machine *machine, const struct berate_task *task,
			     u64 now_ns)
{
	return task->deadline_ns + 1;
}

static inline u64 berate_slice(const struct berate_params *params,
			       const struct berate_machine *machine, const struct berate_task *task,
			       u64 now_ns)
{
	return policy_max(policy_minus(task->quantum_ns, task->ran_ns), 1);
}

static inline bool berate_mdn(const struct berate_params *params, struct berate_machine *machine,
			      struct berate_task *task, u64 now_ns)
{
	return params->mdn && boost_notified(&params->boost, &task->boost, now_ns);
}

#endif
