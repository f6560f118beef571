/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * BeRate, with missed deadline notifications: section 3.3 of "Missed Deadline Notification in Best-effort
 * Schedulers".
 *
 * A task has a quantum q by its nice. What it computes from one blocking to the next, or until a quantum is over,
 * is averaged to e. L is the sum of all tasks' quanta. If the task had just its fair share of the CPU, e would
 * take it
 *
 *	p = e L / q
 *
 * That far from now is its deadline, whenever it wakes or ends a quantum; the earliest runs. The deadline of a task
 * that never blocks is postponed whenever it is preempted. Notifications make q longer for a while
 * (boost.h), and so the deadline earlier.
 */
#ifndef ONBEAT_BERATE_POLICY_H
#define ONBEAT_BERATE_POLICY_H

#include "../common/boost.h"

struct berate_params {
	/* The quantum at nice 0. */
	u64 quantum_ns;
	/* Notifications are listened to: 0 or 1. */
	u64 mdn;
	/* One sample moves the average by one part of so many. */
	u64 inertia;
	struct boost_params boost;
};

/* The quantum is that of Linux 2.4; the paper does not say how e and the boost are averaged. */
#define BERATE_PARAMS_DEFAULT                                                \
	{                                                                    \
		.quantum_ns = 60 * POLICY_NS_PER_MS, .mdn = 1, .inertia = 2, \
		.boost = { .average_ns = 500 * POLICY_NS_PER_MS,             \
			   .step = 2 * BOOST_ONE,                            \
			   .most = 4 * BOOST_ONE,                            \
			   .decay_ns = 6000 * POLICY_NS_PER_MS },            \
	}

struct berate_machine {
	/* L: the sum of the quanta of all tasks. */
	u64 load_ns;
};

struct berate_task {
	/* q without what notifications add. */
	u64 quantum_ns;
	/* The average of e. */
	u64 mean_ns;
	/* What it has computed since it last blocked or ended a quantum. */
	u64 ran_ns;
	u64 deadline_ns;
	/* How many quanta it has ended since it last blocked. */
	u64 rounds;
	struct boost boost;
};

/* Twice the quantum of nice 0 at -20, next to nothing at 19. */
static inline u64 berate_quantum(const struct berate_params *params, s32 nice)
{
	u64 worth = nice > 19 ? 1 : nice < -20 ? 40 : (u64)(20 - nice);

	return policy_max(params->quantum_ns / 20 * worth, 1000);
}

static inline void berate_renice(const struct berate_params *params, struct berate_machine *machine,
				 struct berate_task *task, s32 nice)
{
	u64 quantum_ns = berate_quantum(params, nice);

	policy_add(&machine->load_ns, quantum_ns - task->quantum_ns);
	task->quantum_ns = quantum_ns;
}

static inline void berate_join(const struct berate_params *params, struct berate_machine *machine,
			       struct berate_task *task, s32 nice, u64 now_ns)
{
	task->quantum_ns = 0;
	berate_renice(params, machine, task, nice);
	task->mean_ns = task->quantum_ns;
	task->ran_ns = 0;
	task->deadline_ns = now_ns;
	task->rounds = 0;
	boost_join(&task->boost, now_ns);
}

static inline void berate_leave(const struct berate_params *params, struct berate_machine *machine,
				struct berate_task *task)
{
	(void)params;
	policy_add(&machine->load_ns, -task->quantum_ns);
	task->quantum_ns = 0;
}

/* The paper's p_est, with the boosted quantum in q and in L. In microseconds, for the product to fit. */
static inline u64 berate_period(const struct berate_machine *machine,
				const struct berate_task *task)
{
	u64 boosted_ns = boost_quantum(&task->boost, task->quantum_ns);
	u64 load_us = (machine->load_ns + boosted_ns - task->quantum_ns) / 1000;

	return task->mean_ns / 1000 * load_us / policy_max(boosted_ns / 1000, 1) * 1000;
}

/* A sample of e. */
static inline void berate_sample(const struct berate_params *params, struct berate_task *task)
{
	u64 inertia = policy_max(params->inertia, 1);

	if (task->ran_ns > task->mean_ns)
		task->mean_ns += (task->ran_ns - task->mean_ns) / inertia;
	else
		task->mean_ns -= (task->mean_ns - task->ran_ns) / inertia;
	task->ran_ns = 0;
}

/* It was blocked and is ready. */
static inline void berate_wakeup(const struct berate_params *params, struct berate_machine *machine,
				 struct berate_task *task, u64 now_ns)
{
	boost_count(&params->boost, &task->boost, true, now_ns);
	boost_decay(&params->boost, &task->boost, now_ns);
	task->deadline_ns = now_ns + berate_period(machine, task);
}

/* It ran, and blocks. */
static inline void berate_block(const struct berate_params *params, struct berate_machine *machine,
				struct berate_task *task, u64 now_ns)
{
	(void)machine;
	boost_count(&params->boost, &task->boost, false, now_ns);
	berate_sample(params, task);
	task->rounds = 0;
}

static inline void berate_pick(const struct berate_params *params, struct berate_machine *machine,
			       struct berate_task *task, u64 now_ns)
{
	(void)params;
	(void)machine;
	(void)task;
	(void)now_ns;
}

/* It has run for so long up to now. */
static inline void berate_charge(const struct berate_params *params, struct berate_machine *machine,
				 struct berate_task *task, u64 ran_ns, u64 now_ns)
{
	(void)params;
	(void)machine;
	(void)now_ns;
	task->ran_ns += ran_ns;
}

/* After a charge, of a task that runs on: true if its quantum is over and it has to stand in line again. */
static inline bool berate_tick(const struct berate_params *params, struct berate_machine *machine,
			       struct berate_task *task, u64 now_ns)
{
	(void)params;
	(void)machine;
	(void)now_ns;
	return task->ran_ns >= task->quantum_ns;
}

/* It ran, and still wants to, but has to stand in line again. */
static inline void berate_put_back(const struct berate_params *params,
				   struct berate_machine *machine, struct berate_task *task,
				   u64 now_ns)
{
	boost_count(&params->boost, &task->boost, false, now_ns);
	boost_decay(&params->boost, &task->boost, now_ns);
	if (berate_tick(params, machine, task, now_ns)) {
		berate_sample(params, task);
		task->rounds += 1;
	} else if (task->rounds == 0) {
		return;
	}
	task->deadline_ns = now_ns + berate_period(machine, task);
}

/* A ready or running task's place in line, the least first: its deadline. */
static inline u64 berate_key(const struct berate_params *params,
			     const struct berate_machine *machine, const struct berate_task *task,
			     u64 now_ns)
{
	(void)params;
	(void)machine;
	(void)now_ns;
	return task->deadline_ns + 1;
}

/* What is left of its quantum. */
static inline u64 berate_slice(const struct berate_params *params,
			       const struct berate_machine *machine, const struct berate_task *task,
			       u64 now_ns)
{
	(void)params;
	(void)machine;
	(void)now_ns;
	return policy_max(policy_minus(task->quantum_ns, task->ran_ns), 1);
}

/* The running task has missed a deadline. True if that was worth something. */
static inline bool berate_mdn(const struct berate_params *params, struct berate_machine *machine,
			      struct berate_task *task, u64 now_ns)
{
	(void)machine;
	return params->mdn && boost_notified(&params->boost, &task->boost, now_ns);
}

#endif
