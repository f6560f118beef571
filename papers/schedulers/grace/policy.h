/* SPDX-License-Identifier: MIT OR Apache-2.0 */

/*
 * The rules of GRACE-OS (Yuan and Nahrstedt, SOSP 2003): earliest deadline first with a budget of
 * work in every period, and a speed that grows with what the job has done.
 *
 * A task is either in real-time mode, ordered by the end of its period, or in best-effort mode: it
 * has no budget yet (its demand is still being measured), or has used it up (overrun protection,
 * section 2.3) and waits for the next replenishment. Best effort runs when nothing else does.
 * Threads that were never tasks here run then, too, at the speed that the last task left (section
 * 4.4); once there is no task, at the highest, as without a request.
 *
 * Work is the time that it takes at the highest speed, in ns: cycles, but for a factor. A speed is
 * a whole number above zero in the caller's unit, `full` the highest.
 *
 * The caller keeps the queue, one for each CPU, in the order of grace_key(); tells what happens;
 * and sets a timer at `period_end_ns` for as long as a job is under way. These rules do not compute
 * budgets and speed schedules.
 */
#ifndef ONBEAT_GRACE_POLICY_H
#define ONBEAT_GRACE_POLICY_H

#include "../common/policy.h"

/* Most points of a speed schedule: the maker of the schedule merges more speeds than that. */
#define GRACE_POINTS 16

#define GRACE_NEVER (~0ULL)

/* Set in every key of a task in best-effort mode. */
#define GRACE_BEST_EFFORT (1ULL << 63)

/* How long a turn in best-effort mode is. */
#define GRACE_TURN_NS (4 * POLICY_NS_PER_MS)

/* A job that has done `after` runs at `speed` from there on. */
struct grace_point {
	u64 after;
	u64 speed;
};

struct grace_plan {
	u64 period_ns;
	/* None while the demand is not known: best effort. */
	u64 budget;
	/*
	 * How many points there are; without one the speed is left alone. The first is at 0, and
	 * both numbers grow.
	 */
	u64 points;
	struct grace_point point[GRACE_POINTS];
};

/* The turns in best-effort mode of a task, or of all that is none. */
struct grace_turns {
	/* The last one: the task whose turn is longest ago is next. */
	u64 ended_ns;
	/*
	 * The time run in the present one, which need not be in one piece, and when there was more
	 * of it.
	 */
	u64 ran_ns;
	u64 last_ns;
};

/* A task; all zero before its plan is set. */
struct grace_task {
	struct grace_plan plan;
	/* The deadline: when the present period ends. */
	u64 period_end_ns;
	/* The rest of the budget, in this period. */
	u64 left;
	/* By the present job. */
	u64 done;
	struct grace_turns turns;
	/*
	 * Jobs that were released and have not ended, as far as periods tell: more than one if the
	 * task is late.
	 */
	u64 owed;
	/* When it last was given a budget in the middle of a job. */
	u64 replenished_ns;
};

/* The work done in `ran_ns`: right up to an hour at 5 GHz in kHz. */
static inline u64 grace_work(u64 ran_ns, u64 speed, u64 full)
{
	if (speed >= full)
		return ran_ns;
	return ran_ns * speed / full;
}

/* A new plan. The task runs by its speeds at once; its budget counts from the next period on. */
static inline void grace_set_plan(struct grace_task *task, const struct grace_plan *plan)
{
	task->plan.period_ns = plan->period_ns;
	task->plan.budget = plan->budget;
	task->plan.points = policy_min(plan->points, GRACE_POINTS);
	for (u32 i = 0; i < GRACE_POINTS; i++)
		task->plan.point[i] = plan->point[i];
}

/*
 * Another task goes by the plan from now on: what the one before had left, and was late with, is
 * not its own. It is the last in line, so that a task that gives up a plan and takes it again gains
 * no turn.
 */
static inline void grace_changes_hands(struct grace_task *task, u64 now_ns)
{
	task->turns.ended_ns = now_ns;
	task->turns.ran_ns = 0;
	task->left = 0;
	task->period_end_ns = 0;
	task->done = 0;
	task->owed = 0;
}

/*
 * The rest of the budget is more than the rest of the period has a right to: right up to an hour.
 * That is the wakeup rule of constant bandwidth servers.
 */
static inline bool grace_left_too_much(const struct grace_task *task, u64 now_ns)
{
	u64 rest_ns = policy_minus(task->period_end_ns, now_ns);

	return (task->left >> 10) * (task->plan.period_ns >> 10) >
	       (task->plan.budget >> 10) * (rest_ns >> 10);
}

/*
 * A job begins that was released at `release_ns`. Where the period of its release has begun with
 * the job before it, what that left of the budget is all there is. A release that comes a little
 * before the period's end begins the next one: else periods would begin with the latest release
 * that there ever was.
 */
static inline void grace_job_begins(struct grace_task *task, u64 release_ns)
{
	/* As far as periods tell, this job has begun already: its work is known. */
	if (!task->owed)
		task->done = 0;
	/* Since then others had the time of a turn: it was over then. */
	if (policy_minus(release_ns, task->turns.last_ns) >= GRACE_TURN_NS && task->turns.ran_ns) {
		task->turns.ended_ns = task->turns.last_ns;
		task->turns.ran_ns = 0;
	}
	task->owed = policy_max(task->owed, 1);
	if (release_ns >= task->period_end_ns || grace_left_too_much(task, release_ns)) {
		task->period_end_ns = release_ns + task->plan.period_ns;
		task->left = task->plan.budget;
		task->owed = 1;
	}
}

/*
 * This many jobs are over. Answers their work. The task's work until the next one begins is part of
 * that one.
 */
static inline u64 grace_jobs_end(struct grace_task *task, u64 jobs)
{
	u64 done = task->done;

	task->done = 0;
	task->owed = policy_minus(task->owed, jobs);
	return done;
}

/* The period is over and the job is not: a new budget, due a period later. */
static inline void grace_period_ends(struct grace_task *task, u64 now_ns)
{
	if (now_ns < task->period_end_ns)
		return;
	task->period_end_ns =
		policy_max(task->period_end_ns, policy_minus(now_ns, task->plan.period_ns)) +
		policy_max(task->plan.period_ns, 1);
	task->left = task->plan.budget;
	task->owed++;
	task->replenished_ns = now_ns;
}

/*
 * The part of `ran_ns` before the task's budget, at best effort or on the budget before: it is
 * done, and does not come off this budget. Right up to an hour, to a microsecond.
 */
static inline u64 grace_before_budget(const struct grace_task *task, u64 ran_ns, u64 from_ns,
				      u64 now_ns)
{
	u64 at_ns = policy_min(task->replenished_ns, now_ns);

	if (at_ns <= from_ns)
		return 0;
	return policy_min(((ran_ns >> 10) * ((at_ns - from_ns) >> 10) /
			   policy_max((now_ns - from_ns) >> 10, 1))
				  << 10,
			  ran_ns);
}

/* The task has done so much more, and not off its budget. */
static inline void grace_did(struct grace_task *task, u64 work)
{
	task->done += work;
}

/*
 * The task wakes; `ended`: a job of it has ended since it last woke. Either a release wakes it, or
 * it goes on with a job in the middle of which it slept. A late task has begun the next job where
 * the last one ended, and may sleep in the middle of that one, too: its period goes on. But a task
 * that sleeps until that is over, or longer than its budget lasts, has let that release pass, as a
 * player drops a frame, and waited for another: its periods begin anew with that.
 */
static inline void grace_wakes(struct grace_task *task, bool ended, u64 now_ns)
{
	if (ended || !task->owed)
		grace_job_begins(task, now_ns);
	else
		grace_period_ends(task, now_ns);
}

/*
 * The task has done so much more. True if that used up its budget: it goes on in best-effort mode.
 */
static inline bool grace_charge(struct grace_task *task, u64 work, u64 now_ns)
{
	bool had_budget = task->left > 0;

	task->done += work;
	task->left -= policy_min(work, task->left);
	if (had_budget && task->left == 0) {
		task->turns.ended_ns = now_ns;
		task->turns.ran_ns = 0;
		return true;
	}
	return false;
}

/*
 * A task in best-effort mode has run for `ran_ns`. True if that ends the turn. A nap ends none, so
 * that a task gains nothing by naps.
 */
static inline bool grace_takes_turn(struct grace_turns *turns, u64 ran_ns, u64 now_ns)
{
	turns->last_ns = now_ns;
	turns->ran_ns += ran_ns;
	if (turns->ran_ns < GRACE_TURN_NS)
		return false;
	turns->ended_ns = now_ns;
	turns->ran_ns = 0;
	return true;
}

static inline u64 grace_turn_left(const struct grace_turns *turns)
{
	return GRACE_TURN_NS - turns->ran_ns;
}

/* Where they stand in line: behind all real-time tasks. */
static inline u64 grace_turns_key(const struct grace_turns *turns)
{
	return GRACE_BEST_EFFORT | turns->ended_ns;
}

/*
 * Where a ready task stands in line: the least first, every real-time task before all in
 * best-effort mode.
 */
static inline u64 grace_key(const struct grace_task *task)
{
	return task->left > 0 ? task->period_end_ns : grace_turns_key(&task->turns);
}

static inline u64 grace_speed(const struct grace_task *task)
{
	u64 speed = 0;

	for (u32 i = 0; i < GRACE_POINTS; i++) {
		if (i >= task->plan.points || task->plan.point[i].after > task->done)
			break;
		speed = task->plan.point[i].speed;
	}
	return speed;
}

/* The work until it is to be looked at again: its speed grows there, or its budget ends. */
static inline u64 grace_until(const struct grace_task *task)
{
	u64 until = task->left > 0 ? task->left : GRACE_NEVER;

	for (u32 i = 0; i < GRACE_POINTS; i++) {
		if (i >= task->plan.points)
			break;
		if (task->plan.point[i].after > task->done) {
			until = policy_min(until, task->plan.point[i].after - task->done);
			break;
		}
	}
	return until;
}

/*
 * The schemes that reclaim (section 4.3): one speed for all, the sum of every task's share. A
 * task's share is its budget over its period from a release on, and what the job really did over
 * the period from its end on.
 */

/* A share of the CPU at its highest speed, in 2^-20. */
#define GRACE_WHOLE (1ULL << 20)

/*
 * The share of the CPU of `work` in every period, rounded up; of more than two hours it counts as
 * two.
 */
static inline u64 grace_share(u64 work, u64 period_ns)
{
	period_ns = policy_max(period_ns, 1);
	work = policy_min(work, 1ULL << 43);
	return (work * GRACE_WHOLE + period_ns - 1) / period_ns;
}

/* The speed that all shares together need. */
static inline u64 grace_speed_of(u64 shares, u64 full)
{
	if (shares >= GRACE_WHOLE)
		return full;
	return policy_max((shares * full + GRACE_WHOLE - 1) / GRACE_WHOLE, 1);
}

#endif
