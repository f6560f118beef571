/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The state of each CPU, the portion of a budget that it took, and the choice of one for urgent
 * work.
 */
#ifndef ONBEAT_RESERVE_CPUS_BPF_H
#define ONBEAT_RESERVE_CPUS_BPF_H

#include "members.bpf.h"

/*
 * The slice of a CPU that found no budget left, because another one was quicker. The group owes it.
 */
#define LEAST_SLICE_NS (20 * 1000)

struct reserve_params params = RESERVE_PARAMS_DEFAULT;
/*
 * The least that the loader accepts: below it a CPU would take less of a budget than it runs on.
 */
struct reserve_params least = { .portion_ns = LEAST_SLICE_NS, .slice_ns = LEAST_SLICE_NS };

struct post {
	struct bpf_timer timer;
	/* The portion that it took, and of which group's budget. */
	u64 portion_ns;
	u32 slot;
	/* The CPU time of its task when that was accounted for last. */
	u64 accounted_ns;
	/* When that is over; 0: the rest runs, or no task. */
	u64 ends_at;
	u64 urgency;
	/* The time that the CPU owes to the tasks of the rest that have no other one. */
	u64 owed_ns;
};

/* The queues are one a group, by its slot, and one for the rest. */
#define REST_QUEUE RESERVE_GROUPS
#define QUEUES (REST_QUEUE + 1)

#include "../common/urgency.bpf.h"

/* The urgency of a turn that a CPU owes: no other work takes the CPU from it. */
#define URGENCY_OWED 0
/*
 * A task of the rest that may not use all CPUs gets one part in this many of a CPU on which it
 * waits: 5%. Admission leaves as much of all CPUs together, by default, but a group may have one of
 * them whole. A task that may use all CPUs is served by what admission leaves. That may be nothing
 * while a CPU leaves: then it gets such a part, too, because the kernel's threads wait, and the
 * loader, which makes the reservations fit.
 */
#define PARTS_OF_A_CPU 20
#define REST_STARVES_NS (500 * POLICY_NS_PER_MS)
/* When one of the rest last began to run where no CPU owed it a turn. */
static u64 rest_began_at;

static __always_inline void owe(s32 cpu, struct post *post, u64 ran_ns, u64 now)
{
	u64 owed_ns = post->owed_ns + ran_ns / (PARTS_OF_A_CPU - 1);

	bool starves = policy_minus(now, rest_began_at) > REST_STARVES_NS;
	s32 most_cpus = starves ? cpu_count : cpu_count - 1;

	if (is_waited_for(REST_QUEUE, cpu, most_cpus))
		post->owed_ns = policy_min(owed_ns, params.slice_ns + params.portion_ns);
}

/*
 * The CPU owes a turn when it owes a slice, and the turn is a portion. The slice is owed after 76
 * ms of groups' work, so that no group is held up where the rest has its part between their
 * budgets. The portion is short, because a group's work waits for it.
 */
static __always_inline bool owes_a_turn(const struct post *post)
{
	return post->owed_ns >= params.slice_ns;
}

/*
 * How much each of the rest had run, at least, that began to run. The time that it ran then is no
 * measure: a little is much in one with little weight, and the others are far behind that.
 */
static u64 virtual_ns;

/* The task begins, or goes on, to run here, for `most_ns` at most. */
static void start(s32 cpu, struct task_struct *task, struct member *member, u64 most_ns, u64 now)
{
	struct group *group = group_at(member->slot);
	struct post *post = post_at(cpu);
	u64 slice_ns;

	if (!post)
		return;
	COUNT(runs);
	post->accounted_ns = task->se.sum_exec_runtime;
	post->slot = member->slot;
	post->portion_ns = 0;
	post->ends_at = 0;
	if (!group) {
		virtual_ns = policy_max(virtual_ns, member->rest.passed_ns);
		if (!owes_a_turn(post)) {
			rest_began_at = now;
			post->urgency = URGENCY_REST;
			set_slice(task, policy_min(params.slice_ns, most_ns));
			return;
		}
		post->urgency = URGENCY_OWED;
		slice_ns = policy_min(params.portion_ns, most_ns);
	} else {
		bpf_spin_lock(&group->lock);
		post->portion_ns = reserve_take(&params, &group->server);
		post->urgency = group->server.deadline;
		bpf_spin_unlock(&group->lock);
		slice_ns = policy_min(policy_max(post->portion_ns, LEAST_SLICE_NS), most_ns);
	}
	set_slice(task, slice_ns);
	post->ends_at = now + slice_ns;
	bpf_timer_start(&post->timer, slice_ns, BPF_F_TIMER_CPU_PIN);
}

/* Accounts for what the task has run here since it was started, or since the last time. */
static void settle(s32 cpu, struct task_struct *task, struct member *member, u64 now)
{
	struct post *post = post_at(cpu);
	struct group *group;
	u64 ran_ns, waits, before, deadline;
	bool used_up, had_none, is_left;

	if (!post)
		return;
	ran_ns = task->se.sum_exec_runtime - post->accounted_ns;
	post->accounted_ns = task->se.sum_exec_runtime;
	group = group_at(post->slot);
	if (!group) {
		reserve_rest_charge(&member->rest, task->scx.weight, ran_ns);
		post->owed_ns = policy_minus(post->owed_ns, ran_ns);
		return;
	}
	owe(cpu, post, ran_ns, now);
	member->turn_ns += ran_ns;
	bpf_spin_lock(&group->lock);
	before = group->server.exhausted;
	had_none = !reserve_available(&group->server);
	waits = reserve_return(&group->server, post->portion_ns, ran_ns, now);
	/* Only the first of several CPUs that find it used up uses it up. */
	used_up = group->server.exhausted > before;
	is_left = had_none && reserve_available(&group->server);
	deadline = group->server.deadline;
	bpf_spin_unlock(&group->lock);
	post->portion_ns = 0;
	wait_until(group, waits);
	/* Other CPUs may have found nothing since all of it was out. */
	if (is_left)
		urge_for_waiting(post->slot, deadline);
	if (used_up)
		COUNT(exhaustions);
}

static int replenished(void *map, u32 *slot, struct group *group)
{
	u64 now = bpf_ktime_get_ns(), waits, deadline;
	bool runs;

	bpf_spin_lock(&group->lock);
	runs = reserve_timer(&group->server, now);
	waits = group->server.replenish_at;
	deadline = group->server.deadline;
	bpf_spin_unlock(&group->lock);
	wait_until(group, waits);
	if (runs)
		urge_for_waiting(*slot, deadline);
	return 0;
}

#endif
