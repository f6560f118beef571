// SPDX-License-Identifier: GPL-2.0-only
/*
 * GRACE-OS under sched_ext. The rules are in policy.h; here are the queues, the clocks and the
 * CPUs.
 *
 * Each thread that has a plan (a budget of work and the points at which its jobs speed up, from
 * user space) has a queue and a timer of its own: the timer gives it its next budget while a job is
 * under way. A timer of each CPU's ends what was planned for it: at a point of the speed schedule,
 * and where the budget ends. A job begins when its thread wakes, and is over when that blocks;
 * unless its program says by marks where its jobs end. All others share the CPUs when
 * no job with a budget wants one. The work of each job is told to user space, which makes the plans
 * of it.
 */
#include "said.bpf.h"

/* A period is over: a job that is not gets its next budget. */
static int period_over(void *map, u32 *slot, struct planned *planned)
{
	u64 now = bpf_ktime_get_ns(), key, ends;

	if (!planned->job)
		return 0;
	bpf_spin_lock(&planned->lock);
	grace_period_ends(&planned->task, now);
	key = grace_key(&planned->task);
	ends = planned->task.period_end_ns;
	bpf_spin_unlock(&planned->lock);
	bpf_timer_start(&planned->timer, ends, BPF_F_TIMER_ABS);
	if (!(key & GRACE_BEST_EFFORT))
		urge_for_waiting(*slot, key);
	return 0;
}

static __always_inline u32 slot_of(struct task_struct *task)
{
	u32 tid = task->pid;
	u32 *slot = bpf_map_lookup_elem(&threads, &tid);

	return slot ? *slot : NO_PLAN;
}

SEC("struct_ops/runnable")
void BPF_PROG(runnable, struct task_struct *task, u64 flags)
{
	struct member *member = member_of(task);
	u64 now = bpf_ktime_get_ns(), ends;
	struct planned *planned;
	bool is_new, ended;
	u32 slot;

	if (!member)
		return;
	COUNT(wakeups);
	slot = slot_of(task);
	planned = plan_at(slot);
	is_new = planned && (slot != member->slot || planned->generation != member->generation);
	if (is_new)
		member->partial = member->says || !(flags & SCX_ENQ_WAKEUP);
	member->slot = slot;
	if (!planned)
		return;
	member->generation = planned->generation;
	ended = !member->says || member->ended;
	if (flags & SCX_ENQ_WAKEUP)
		member->ended = false;
	bpf_spin_lock(&planned->lock);
	if (is_new)
		grace_changes_hands(&planned->task, now);
	if (flags & SCX_ENQ_WAKEUP)
		grace_wakes(&planned->task, ended, now);
	else
		grace_period_ends(&planned->task, now);
	ends = planned->task.period_end_ns;
	bpf_spin_unlock(&planned->lock);
	planned->job = true;
	bpf_timer_start(&planned->timer, ends, BPF_F_TIMER_ABS);
}

SEC("struct_ops/quiescent")
void BPF_PROG(quiescent, struct task_struct *task, u64 flags)
{
	struct member *member = member_of(task);
	struct planned *planned = member ? plan_of(member) : NULL;
	u64 done;

	if (member && flags & SCX_DEQ_SLEEP)
		member->changes = false;
	if (!planned)
		return;
	planned->job = false;
	if (member->says || !(flags & SCX_DEQ_SLEEP))
		return;
	bpf_spin_lock(&planned->lock);
	done = grace_jobs_end(&planned->task, 1);
	bpf_spin_unlock(&planned->lock);
	if (done && !member->partial && may_send(member, 1, bpf_ktime_get_ns()))
		send(GRACE_FINISHES, task->pid, done, 1);
	member->partial = false;
}

SEC("struct_ops/enqueue")
void BPF_PROG(enqueue, struct task_struct *task, u64 flags)
{
	struct member *member = member_of(task);
	struct planned *planned;
	bool has_cpu;
	u64 key;

	if (!member) {
		insert(task, SCX_DSQ_GLOBAL, SLICE_NS, flags);
		return;
	}
	COUNT(queued);
	has_cpu = member->woke_to_idle && !wanted_from_above(scx_bpf_task_cpu(task));
	member->woke_to_idle = false;
	planned = plan_of(member);
	/* A kernel thread of this CPU works for all: it goes before, but not again and again. */
	if (!planned && serves_its_cpu(task) && flags & SCX_ENQ_WAKEUP) {
		insert(task, SCX_DSQ_LOCAL, SLICE_NS, flags);
		return;
	}
	insert(task, planned ? member->slot : REST_QUEUE, SLICE_NS, flags);
	if (has_cpu)
		return;
	key = planned ? grace_key(&planned->task) : GRACE_BEST_EFFORT;
	/*
	 * At best effort it calls a CPU when it wakes, if its last turn is longest ago: a job that
	 * naps would wait for a whole turn of the rest after each nap.
	 */
	if (!(key & GRACE_BEST_EFFORT) || (planned && flags & SCX_ENQ_WAKEUP)) {
		urge(key, task->cpus_ptr);
		return;
	}
	kick_idle(task->cpus_ptr);
}

/* The plan whose thread waits and comes first, those in `not_here` left out. */
static u32 first_in_line(u64 not_here, u64 *key)
{
	u32 slot, found = NO_PLAN;
	struct planned *planned;
	u64 own;

	*key = ~0ULL;
	bpf_for(slot, 0, GRACE_PLANS)
	{
		planned = plan_at(slot);
		if (!planned || not_here & 1ULL << slot || !planned->is_set)
			continue;
		own = grace_key(&planned->task);
		if (own >= *key || !scx_bpf_dsq_nr_queued(slot))
			continue;
		*key = own;
		found = slot;
	}
	return found;
}

/*
 * A job without budget that may run on this CPU, the one whose turn is longest ago, if it is before
 * this one.
 */
static bool take_overrun(u64 not_here, u64 before)
{
	u32 slot, tries;
	u64 key;

	bpf_for(tries, 0, GRACE_PLANS)
	{
		slot = first_in_line(not_here, &key);
		if (slot >= NO_PLAN || key >= before)
			break;
		if (move_to_local(slot))
			return true;
		not_here |= 1ULL << slot;
	}
	return false;
}

SEC("struct_ops/dispatch")
void BPF_PROG(dispatch, s32 cpu, struct task_struct *previous)
{
	u64 now = bpf_ktime_get_ns(), key, not_here = 0, own_key = ~0ULL, rest_key;
	struct post *post = post_at(cpu);
	struct member *member = NULL;
	struct planned *own = NULL;
	u32 slot, tries;

	if (!post || is_taken_from_above(cpu))
		return;
	if (previous && is_queued(previous))
		member = member_of(previous);
	if (member) {
		settle(cpu, previous, member, now);
		own = plan_of(member);
		own_key = own ? grace_key(&own->task) : rest_key_of(post);
	}
	bpf_for(tries, 0, GRACE_PLANS)
	{
		slot = first_in_line(not_here, &key);
		if (slot >= NO_PLAN || own_key <= key || key & GRACE_BEST_EFFORT)
			break;
		if (move_to_local(slot))
			return;
		/* It may not run on this CPU. */
		not_here |= 1ULL << slot;
	}
	if (member && !(own_key & GRACE_BEST_EFFORT)) {
		start(cpu, previous, member, UNLIMITED, now);
		return;
	}
	/* Best effort: jobs without a budget and the rest take turns. */
	rest_key = rest_key_of(post);
	if (take_overrun(not_here, policy_min(own_key, rest_key)))
		return;
	if (own_key >= rest_key && move_to_local(REST_QUEUE))
		return;
	if (own_key > rest_key && take_overrun(not_here, own_key))
		return;
	if (member)
		start(cpu, previous, member, UNLIMITED, now);
}

#include "../common/reserving.bpf.h"

SEC("struct_ops/running")
void BPF_PROG(running, struct task_struct *task)
{
	struct member *member = member_of(task);

	if (member)
		start(scx_bpf_task_cpu(task), task, member, may_go_on_for(task, &member->changes),
		      bpf_ktime_get_ns());
}

SEC("struct_ops.s/init_task")
s32 BPF_PROG(init_task, struct task_struct *task, struct scx_init_task_args *args)
{
	struct member *member =
		bpf_task_storage_get(&members, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (!member)
		return -12; /* ENOMEM */
	member->slot = NO_PLAN;
	return 0;
}

/* Its number may be another thread's soon. */
SEC("struct_ops/exit_task")
void BPF_PROG(exit_task, struct task_struct *task, struct scx_exit_task_args *args)
{
	u32 tid = task->pid;

	if (forget(tid))
		send(GRACE_LEAVES, tid, 0, 0);
}

SEC("struct_ops.s/init")
s32 BPF_PROG(init)
{
	struct planned *planned;
	struct post *post;
	u32 number;
	s32 error;

	bpf_for(number, 0, GRACE_PLANS)
	{
		error = scx_bpf_create_dsq(number, -1);
		if (error)
			return error;
		planned = plan_at(number);
		if (!planned)
			return -22; /* EINVAL */
		bpf_timer_init(&planned->timer, &plans, CLOCK_MONOTONIC);
		bpf_timer_set_callback(&planned->timer, period_over);
	}
	error = init_posts();
	if (error)
		return error;
	bpf_for(number, 0, (u32)cpu_count)
	{
		post = post_at(number);
		if (post)
			post->speed = FULL;
	}
	return scx_bpf_create_dsq(REST_QUEUE, -1);
}

SCHEDULER("grace", SCX_OPS_ENQ_LAST, .exit_task = (void *)exit_task);
