/* SPDX-License-Identifier: MIT OR Apache-2.0 */

/* Names to link to for the rules of GRACE-OS. */

#include "../../../schedulers/grace/policy.h"

void onbeat_grace_set_plan(struct grace_task *task, const struct grace_plan *plan)
{
	grace_set_plan(task, plan);
}

void onbeat_grace_job_begins(struct grace_task *task, u64 release_ns)
{
	grace_job_begins(task, release_ns);
}

u64 onbeat_grace_jobs_end(struct grace_task *task, u64 jobs)
{
	return grace_jobs_end(task, jobs);
}

void onbeat_grace_period_ends(struct grace_task *task, u64 now_ns)
{
	grace_period_ends(task, now_ns);
}

void onbeat_grace_wakes(struct grace_task *task, bool ended, u64 now_ns)
{
	grace_wakes(task, ended, now_ns);
}

bool onbeat_grace_charge(struct grace_task *task, u64 work, u64 now_ns)
{
	return grace_charge(task, work, now_ns);
}

void onbeat_grace_takes_turn(struct grace_task *task, u64 ran_ns, u64 now_ns)
{
	grace_takes_turn(&task->turns, ran_ns, now_ns);
}

u64 onbeat_grace_turn_left(const struct grace_task *task)
{
	return grace_turn_left(&task->turns);
}

u64 onbeat_grace_before_budget(const struct grace_task *task, u64 ran_ns, u64 from_ns, u64 now_ns)
{
	return grace_before_budget(task, ran_ns, from_ns, now_ns);
}

void onbeat_grace_changes_hands(struct grace_task *task, u64 now_ns)
{
	grace_changes_hands(task, now_ns);
}

u64 onbeat_grace_key(const struct grace_task *task)
{
	return grace_key(task);
}

u64 onbeat_grace_speed(const struct grace_task *task)
{
	return grace_speed(task);
}

u64 onbeat_grace_until(const struct grace_task *task)
{
	return grace_until(task);
}

u64 onbeat_grace_work(u64 ran_ns, u64 speed, u64 full)
{
	return grace_work(ran_ns, speed, full);
}

u64 onbeat_grace_share(u64 work, u64 period_ns)
{
	return grace_share(work, period_ns);
}

u64 onbeat_grace_speed_of(u64 shares, u64 full)
{
	return grace_speed_of(shares, full);
}

u64 onbeat_grace_size_of_task(void)
{
	return sizeof(struct grace_task);
}
