// SPDX-License-Identifier: GPL-2.0-only
/*
 * Group reservations under sched_ext. The rules are in policy.h; here are the queues, the clocks
 * and the CPUs.
 *
 * Each group has a queue and a timer. A CPU that looks for work goes through the groups that have
 * both a thread waiting and budget, takes the one with the earliest deadline, and a portion of its
 * budget with it. A timer of the CPU's own ends the portion, so that a budget is enforced to some
 * microseconds and not at the tick; the slice is as long as the portion, so that the tick does it
 * should the timer come late. Threads without a reservation share one queue by weight, and run when
 * no group wants to; but a task that may not use all CPUs gets a part of one (cpus.bpf.h).
 */
#include "cpus.bpf.h"

SEC("struct_ops/runnable")
void BPF_PROG(runnable, struct task_struct *task, u64 flags)
{
	struct member *member = member_of(task);

	if (!member)
		return;
	member->ready = true;
	member->slot = NO_GROUP;
	count(member, slot_of(task, member), bpf_ktime_get_ns());
	COUNT(wakeups);
	reserve_rest_wake(&params, &member->rest, virtual_ns);
}

SEC("struct_ops/quiescent")
void BPF_PROG(quiescent, struct task_struct *task, u64 flags)
{
	struct member *member = member_of(task);

	if (!member)
		return;
	if (flags & SCX_DEQ_SLEEP)
		member->changes = false;
	count(member, NO_GROUP, bpf_ktime_get_ns());
	member->ready = false;
}

/* The virtual time of the first of the rest in line, or of this one if there is none. */
static __always_inline u64 first_of_rest(u64 own_ns)
{
	struct task_struct *task;
	u64 first_ns = own_ns;

	bpf_for_each(scx_dsq, task, REST_QUEUE, 0)
	{
		first_ns = task->scx.dsq_vtime;
		break;
	}
	return first_ns;
}

SEC("struct_ops/enqueue")
void BPF_PROG(enqueue, struct task_struct *task, u64 flags)
{
	struct member *member = member_of(task);
	bool has_cpu;
	struct group *group;

	if (!member) {
		insert(task, SCX_DSQ_GLOBAL, params.slice_ns, flags);
		return;
	}
	COUNT(queued);
	has_cpu = member->woke_to_idle && !wanted_from_above(scx_bpf_task_cpu(task));
	member->woke_to_idle = false;
	recount(task, member, bpf_ktime_get_ns());
	group = group_at(member->slot);
	if (group) {
		/*
		 * A thread that was interrupted in its turn goes on first. A thread that used up
		 * its turn or the budget goes behind the others.
		 */
		if (!(flags & SCX_ENQ_WAKEUP) && reserve_available(&group->server) &&
		    member->turn_ns < params.slice_ns)
			flags |= SCX_ENQ_HEAD;
		else
			member->turn_ns = 0;
		insert(task, member->slot, params.portion_ns, flags);
		if (!has_cpu && reserve_available(&group->server))
			urge(group->server.deadline, task->cpus_ptr);
		return;
	}
	/* A kernel thread of this CPU works for all: it goes before, but not again and again. */
	if (serves_its_cpu(task) && flags & SCX_ENQ_WAKEUP) {
		insert(task, SCX_DSQ_LOCAL, params.slice_ns, flags);
		return;
	}
	reserve_rest_stand(&member->rest, first_of_rest(member->rest.passed_ns));
	insert_by_key(task, REST_QUEUE, params.slice_ns, member->rest.passed_ns, flags);
	if (has_cpu)
		return;
	kick_idle(task->cpus_ptr);
}

/*
 * The group with the earliest deadline among those with budget and a thread waiting, those in
 * `not_here` left out.
 */
static u32 first_in_line(u64 not_here, u64 *deadline)
{
	u32 slot, found = NO_GROUP;
	struct group *group;

	*deadline = URGENCY_REST;
	bpf_for(slot, 0, RESERVE_GROUPS)
	{
		group = group_at(slot);
		if (!group || not_here & 1ULL << slot || !group->server.runtime_ns)
			continue;
		if (group->server.deadline >= *deadline || !reserve_available(&group->server))
			continue;
		if (!scx_bpf_dsq_nr_queued(slot))
			continue;
		*deadline = group->server.deadline;
		found = slot;
	}
	return found;
}

/* Threads that still wait in the queue of a group that is no more are of the rest. */
static bool take_stray(void)
{
	struct group *group;
	u32 slot;

	bpf_for(slot, 0, RESERVE_GROUPS)
	{
		group = group_at(slot);
		if (group && group->generation && !group->server.runtime_ns && move_to_local(slot))
			return true;
	}
	return false;
}

SEC("struct_ops/dispatch")
void BPF_PROG(dispatch, s32 cpu, struct task_struct *previous)
{
	u64 now = bpf_ktime_get_ns(), deadline, not_here = 0;
	struct post *post = post_at(cpu);
	struct member *member = NULL;
	struct group *own = NULL;
	u32 slot, tries;

	if (is_taken_from_above(cpu))
		return;
	if (previous && is_queued(previous))
		member = member_of(previous);
	if (member) {
		settle(cpu, previous, member, now);
		recount(previous, member, now);
		own = group_at(member->slot);
		if (own && !reserve_available(&own->server))
			member = NULL;
	}
	if (post && owes_a_turn(post) && move_to_local(REST_QUEUE))
		return;
	bpf_for(tries, 0, RESERVE_GROUPS)
	{
		slot = first_in_line(not_here, &deadline);
		if (slot >= NO_GROUP || (member && own && own->server.deadline <= deadline))
			break;
		if (move_to_local(slot))
			return;
		/* None of those who wait may run on this CPU. */
		not_here |= 1ULL << slot;
	}
	/* A budget of a whole CPU never runs out under one thread: the others have their turns. */
	if (member && own && member->turn_ns >= params.slice_ns && move_to_local(member->slot))
		return;
	if (!(member && own) && (take_stray() || move_to_local(REST_QUEUE)))
		return;
	if (member)
		start(cpu, previous, member, UNLIMITED, now);
}

#include "../common/reserving.bpf.h"

SEC("struct_ops/running")
void BPF_PROG(running, struct task_struct *task)
{
	struct member *member = member_of(task);
	u64 now = bpf_ktime_get_ns();

	if (!member)
		return;
	recount(task, member, now);
	start(scx_bpf_task_cpu(task), task, member, may_go_on_for(task, &member->changes), now);
}

SEC("struct_ops.s/init_task")
s32 BPF_PROG(init_task, struct task_struct *task, struct scx_init_task_args *args)
{
	struct member *member =
		bpf_task_storage_get(&members, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	struct member *parent;
	struct group *group;

	if (!member)
		return -12 /* ENOMEM */;
	member->slot = NO_GROUP;
	member->born_in = NO_GROUP;
	member->rest.passed_ns = virtual_ns;
	if (!args->fork)
		return 0;
	parent = member_of(bpf_get_current_task_btf());
	if (!parent || !parent->passes_on)
		return 0;
	group = group_at(parent->slot);
	if (group) {
		member->born_in = parent->slot;
		member->born_generation = group->generation;
	}
	return 0;
}

SEC("struct_ops.s/init")
s32 BPF_PROG(init)
{
	struct group *group;
	u32 number;
	s32 error;

	bpf_for(number, 0, RESERVE_GROUPS)
	{
		error = scx_bpf_create_dsq(number, -1);
		if (error)
			return error;
		group = group_at(number);
		if (!group)
			return -22 /* EINVAL */;
		bpf_timer_init(&group->timer, &groups, CLOCK_MONOTONIC);
		bpf_timer_set_callback(&group->timer, replenished);
	}
	error = init_posts();
	if (error)
		return error;
	return scx_bpf_create_dsq(REST_QUEUE, -1);
}

/* Run by the loader: gives a slot's group a reservation, changes it, or takes it away. */
SEC("syscall")
int set_group(struct reserve_call *call)
{
	struct group *group = group_at(call->slot);
	u64 now = bpf_ktime_get_ns();
	bool is_set = call->runtime_ns, is_new = false;
	u32 number;
	int error = 0;

	if (!group)
		return -22; /* EINVAL */
	if (!is_set)
		leave(call);
	bpf_spin_lock(&group->lock);
	if (!is_set) {
		reserve_clear(&group->server);
	} else {
		is_new = !group->server.runtime_ns;
		if (is_new)
			group->generation++;
		reserve_set(&group->server, call->runtime_ns, call->deadline_ns, call->period_ns,
			    now);
	}
	bpf_spin_unlock(&group->lock);
	if (is_set)
		error = join(call, is_new);
	/* Those who run are looked at anew. */
	bpf_for(number, 0, (u32)cpu_count) scx_bpf_kick_cpu(number, SCX_KICK_PREEMPT);
	return error;
}

/* Run by the loader: what a slot's group has used. */
SEC("syscall")
int tell_group(struct reserve_call *call)
{
	struct group *group = group_at(call->slot);
	u64 used_ns, exhausted;

	if (!group)
		return -22; /* EINVAL */
	bpf_spin_lock(&group->lock);
	used_ns = group->server.used_ns;
	exhausted = group->server.exhausted;
	bpf_spin_unlock(&group->lock);
	call->used_ns = used_ns;
	call->exhausted = exhausted;
	return 0;
}

SCHEDULER("reserve", SCX_OPS_ENQ_LAST);
