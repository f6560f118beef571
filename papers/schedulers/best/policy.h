/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * BEST, with missed deadline notifications: section 3.2 of "Missed Deadline Notification in
 * Best-effort Schedulers".
 *
 * A periodic task enters the run queue when a period begins. So the time between two entries is
 * measured, and averaged; how well the measurements agree with the average is the confidence. A
 * task with enough of it is well-behaved: each time it enters, its deadline is the end of the
 * period that begins. Any other gets a pseudo-period, a shorter one if it is interactive. The ready
 * task with the earliest deadline runs. One that runs for long without blocking is given a new
 * deadline, and less confidence.
 *
 * A task that is late does not block, but begins the next job at once, and the next measurement is
 * of two periods or more. A notification says when that happened, and stands for the entry that did
 * not. It makes no measured period shorter than a sleep does; it counts only near the end of a
 * period that was established before; and only `patience` of them count before the task must really
 * block. So a lying task has no more than the deadlines that it earned.
 *
 * A notification outside the window is discarded (3.2.2). With `discard_late` set to 0 one that is
 * too late counts for nothing either, but the next period is measured from it: else two or three
 * periods are measured as one, which notifications are to prevent. In Fig. 9 BEST knows the period
 * of the faster program 65% of the time as in the paper, 94% so (51% without notifications). A task
 * that notifies late and then sleeps for less is measured as faster than it is; but it gains no
 * more than by waking that often.
 */
#ifndef ONBEAT_BEST_POLICY_H
#define ONBEAT_BEST_POLICY_H

#include "../common/windows.h"

#define BEST_SURE 1024ULL
/* No period is longer: a task that sleeps for longer tells nothing. */
#define BEST_LONGEST_NS (10000 * POLICY_NS_PER_MS)

struct best_params {
	/* Notifications are listened to: 0 or 1. */
	u64 mdn;
	/* From this confidence on, of 1024, a task is well-behaved. */
	u64 confident;
	/* One measurement moves the averages by one part of this many. */
	u64 inertia;
	/* The pseudo-period of a task that blocks by itself, and of one that does not. */
	u64 interactive_ns;
	u64 batch_ns;
	/* For how long a task runs until it gets a new deadline. */
	u64 longest_run_ns;
	/* A notification counts up to this part of the period, of 1024, before or after its end. */
	u64 window;
	/* This many notifications in a row count for a task that does not block meanwhile. */
	u64 patience;
	/* A notification after the window changes nothing, as in the paper: 0 or 1. */
	u64 discard_late;
};

/* The paper names none of these numbers: they are ours. */
#define BEST_PARAMS_DEFAULT                                                                   \
	{                                                                                     \
		.mdn = 1, .confident = 768, .inertia = 4,                                     \
		.interactive_ns = 100 * POLICY_NS_PER_MS, .batch_ns = 600 * POLICY_NS_PER_MS, \
		.longest_run_ns = 60 * POLICY_NS_PER_MS, .window = 256, .patience = 8,        \
		.discard_late = 1,                                                            \
	}

/*
 * Tasks that use up a longest run are counted in windows of this time: 33 such runs of the default.
 */
#define BEST_WINDOW_NS (2000 * POLICY_NS_PER_MS)

struct best_machine {
	/* The number of the present window, from one. Zero: there was none. */
	u64 window;
	/* How many tasks have used up a longest run in a window, by its number. */
	u64 hogs[WINDOWS];
	/* How many notifications counted as the end of a period. */
	u64 heard;
};

struct best_task {
	/* When it last entered the run queue, or notified instead. Zero: not yet. */
	u64 entered_ns;
	/* The average time between two entries. Zero: none yet. */
	u64 period_ns;
	/* How well the measurements agree, of 1024. */
	u64 confidence;
	/* The end of the period, real or not. */
	u64 deadline_ns;
	/* How long it has run under this deadline. */
	u64 ran_ns;
	/*
	 * It used up its longest run since it last blocked; and the last window in which it did at
	 * all.
	 */
	u64 batch;
	u64 window;
	/* How many notifications counted since it last entered. */
	u64 notified;
	/* It notified, and has not entered since. */
	u64 told;
	/* It has been well-behaved: its period was established. */
	u64 known;
};

static inline void best_renice(const struct best_params *params, struct best_machine *machine,
			       struct best_task *task, s32 nice)
{
}

POLICY_OF_STRANGERS(best)

static inline void best_leave(const struct best_params *params, struct best_machine *machine,
			      struct best_task *task)
{
	windows_take_off(machine->window, machine->hogs, task->window, 1);
	/* It is counted again if it comes back. */
	task->window = 0;
}

static inline bool best_is_well_behaved(const struct best_params *params,
					const struct best_task *task)
{
	return task->period_ns > 0 && task->confidence >= params->confident;
}

static inline u64 best_averaged(const struct best_params *params, u64 average, u64 measured)
{
	u64 inertia = policy_max(params->inertia, 1);

	if (measured > average)
		return average + (measured - average) / inertia;
	return average - (average - measured) / inertia;
}

/* A period of `measured_ns` has been seen, from one entry to the next. */
static inline void best_measured(const struct best_params *params, struct best_task *task,
				 u64 measured_ns)
{
	u64 period_ns = task->period_ns, off;

	if (period_ns == 0) {
		task->period_ns = measured_ns;
		return;
	}
	off = policy_max(measured_ns, period_ns) - policy_min(measured_ns, period_ns);
	off = policy_min(off * BEST_SURE / period_ns, BEST_SURE);
	task->confidence = best_averaged(params, task->confidence, BEST_SURE - off);
	task->period_ns = policy_max(best_averaged(params, period_ns, measured_ns), 1);
	if (best_is_well_behaved(params, task))
		task->known = 1;
}

/*
 * A task that never blocks has a deadline twice as far away as all such tasks need for a run each,
 * as counted in this window and the one before: else many of them would be late, and come before a
 * periodic task whose period has just begun. On several CPUs that is later than it need be.
 */
static inline u64 best_batch_period(const struct best_params *params,
				    const struct best_machine *machine)
{
	u64 present = machine->hogs[machine->window & (WINDOWS - 1)];
	u64 before = machine->hogs[(machine->window - 1) & (WINDOWS - 1)];
	u64 all_ns = policy_max(present, before) * params->longest_run_ns;

	return policy_max(params->batch_ns, 2 * policy_min(all_ns, BEST_WINDOW_NS));
}

/*
 * It is a stranger, and computes without end as far as is known: if it came first, a task that
 * starts one child after the other would have the CPU.
 */
static inline void best_join(const struct best_params *params, struct best_machine *machine,
			     struct best_task *task, s32 nice, u64 now_ns)
{
	task->entered_ns = 0;
	task->period_ns = 0;
	task->confidence = 0;
	task->deadline_ns = now_ns + best_batch_period(params, machine);
	task->ran_ns = 0;
	task->batch = 0;
	task->window = 0;
	task->notified = 0;
	task->told = 0;
	task->known = 0;
}

/* A period begins now, as far as the scheduler can tell. */
static inline void best_new_deadline(const struct best_params *params,
				     const struct best_machine *machine, struct best_task *task,
				     u64 now_ns)
{
	u64 period_ns = task->batch ? best_batch_period(params, machine) : params->interactive_ns;

	if (best_is_well_behaved(params, task))
		period_ns = task->period_ns;
	task->deadline_ns = now_ns + period_ns;
	task->ran_ns = 0;
}

/* The part of a period that counts as near to its end, or to its begin. */
static inline u64 best_window(const struct best_params *params, const struct best_task *task)
{
	return task->period_ns * params->window / BEST_SURE;
}

/*
 * It was blocked and is ready: it enters the run queue. A program that has just notified may sleep
 * for microseconds, until a time that is over: that is the period that the notification began.
 */
static inline void best_wakeup(const struct best_params *params, struct best_machine *machine,
			       struct best_task *task, u64 now_ns)
{
	u64 measured_ns = policy_minus(now_ns, task->entered_ns);

	if (measured_ns > BEST_LONGEST_NS) {
		task->period_ns = 0;
		task->confidence = 0;
		task->known = 0;
	} else if (task->told && measured_ns < best_window(params, task)) {
		task->told = 0;
		return;
	} else if (task->entered_ns > 0 && measured_ns > 0) {
		best_measured(params, task, measured_ns);
	}
	task->told = 0;
	task->notified = 0;
	task->entered_ns = now_ns;
	best_new_deadline(params, machine, task, now_ns);
}

static inline void best_block(const struct best_params *params, struct best_machine *machine,
			      struct best_task *task, u64 now_ns)
{
	task->batch = 0;
}

static inline void best_pick(const struct best_params *params, struct best_machine *machine,
			     struct best_task *task, u64 now_ns)
{
}

static inline void best_charge(const struct best_params *params, struct best_machine *machine,
			       struct best_task *task, u64 ran_ns, u64 now_ns)
{
	task->ran_ns += ran_ns;
}

static inline bool best_tick(const struct best_params *params, struct best_machine *machine,
			     struct best_task *task, u64 now_ns)
{
	return task->ran_ns >= params->longest_run_ns;
}

static inline bool best_keeps_place(const struct best_task *task)
{
	return true;
}

static inline void best_put_back(const struct best_params *params, struct best_machine *machine,
				 struct best_task *task, u64 behind, u64 now_ns)
{
	u64 window;

	if (!best_tick(params, machine, task, now_ns))
		return;
	window = windows_at(&machine->window, machine->hogs, BEST_WINDOW_NS, now_ns);
	if (task->window != window)
		policy_add(windows_sum(machine->hogs, window), 1);
	task->window = window;
	/* A task that only runs is less and less likely to be periodic. */
	task->confidence = best_averaged(params, task->confidence, 0);
	task->batch = 1;
	best_new_deadline(params, machine, task, now_ns);
}

static inline u64 best_key(const struct best_params *params, const struct best_machine *machine,
			   const struct best_task *task, u64 now_ns)
{
	return task->deadline_ns + 1;
}

static inline u64 best_slice(const struct best_params *params, const struct best_machine *machine,
			     const struct best_task *task, u64 now_ns)
{
	return policy_max(policy_minus(params->longest_run_ns, task->ran_ns), 1);
}

static inline bool best_mdn(const struct best_params *params, struct best_machine *machine,
			    struct best_task *task, u64 now_ns)
{
	u64 since_ns = policy_minus(now_ns, task->entered_ns);
	u64 window_ns = best_window(params, task);
	bool is_late;

	if (!params->mdn || !task->known || since_ns + window_ns < task->period_ns)
		return false;
	is_late = since_ns > task->period_ns + window_ns;
	if (is_late && params->discard_late)
		return false;
	/* The next period begins now, and is measured from here whether this one counts or not. */
	task->entered_ns = now_ns;
	task->told = 1;
	if (is_late || task->notified >= params->patience)
		return false;
	task->notified += 1;
	policy_add(&machine->heard, 1);
	best_measured(params, task, policy_max(since_ns, task->period_ns));
	best_new_deadline(params, machine, task, now_ns);
	return true;
}

#endif
