/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The operations that the schedulers with reservations have in common. A waiting task looks for
 * another CPU when one is taken. A CPU looks for one before it sleeps, and at each tick.
 *
 * The scheduler that includes this has queues for tasks by urgency, numbered from 0, and REST_QUEUE
 * behind these for all others; and has defined before: first_in_line, the queue, if any, from which
 * the most urgent task comes; settle, which accounts for what a task has run; and struct member,
 * the state of a task.
 */
#ifndef ONBEAT_RESERVING_BPF_H
#define ONBEAT_RESERVING_BPF_H

#include "urgency.bpf.h"

#define CLOCK_MONOTONIC 1

/*
 * The first task in line looks for another CPU than this one, which a task takes that comes before
 * all of ours.
 */
static void pass_on(s32 cpu)
{
	u64 urgency;
	u32 queue;

	if (!wanted_from_above(cpu))
		return;
	queue = first_in_line(0, &urgency);
	if (queue < REST_QUEUE)
		urge_for_waiting(queue, urgency);
	urge_for_waiting(REST_QUEUE, URGENCY_REST);
}

SEC("struct_ops/select_cpu")
s32 BPF_PROG(select_cpu, struct task_struct *task, s32 previous, u64 flags)
{
	struct member *member = member_of(task);
	bool is_idle = false;
	s32 cpu = scx_bpf_select_cpu_dfl(task, previous, flags, &is_idle);

	if (member)
		member->woke_to_idle = is_idle;
	return cpu;
}

SEC("struct_ops/stopping")
void BPF_PROG(stopping, struct task_struct *task, bool runnable)
{
	struct member *member = member_of(task);
	s32 cpu = scx_bpf_task_cpu(task);
	struct post *post = post_at(cpu);

	if (!member || !post)
		return;
	settle(cpu, task, member, bpf_ktime_get_ns());
	post->urgency = URGENCY_IDLE;
	post->ends_at = 0;
	/* Unless it sleeps, which quiescent tells. */
	member->changes = !runnable;
	if (runnable)
		displace(task, cpu);
	pass_on(cpu);
}

/*
 * From now on tasks find this CPU as an idle one. It looks once more for work that came after its
 * last look: a budget that another CPU brought meanwhile, and the thread that ran here last, which
 * stands in line only now.
 */
SEC("struct_ops/update_idle")
void BPF_PROG(update_idle, s32 cpu, bool idle)
{
	u64 urgency;

	if (!idle)
		pass_on(cpu);
	else if (first_in_line(0, &urgency) < REST_QUEUE || scx_bpf_dsq_nr_queued(REST_QUEUE))
		kick_unless_away(cpu, 0);
}

/*
 * A call of a CPU can be lost: between two tasks a CPU seems to run none, before it sleeps it is
 * not idle yet, and the kernel puts a task into its queue only after `enqueue` has called for it.
 * So a CPU looks again at each tick.
 */
SEC("struct_ops/tick")
void BPF_PROG(tick, struct task_struct *task)
{
	s32 cpu = scx_bpf_task_cpu(task);
	u64 urgency, not_here = 0;
	struct post *post = post_at(cpu);
	u32 queue, tries;

	if (!post)
		return;
	bpf_for(tries, 0, REST_QUEUE)
	{
		queue = first_in_line(not_here, &urgency);
		if (queue >= REST_QUEUE || urgency >= post->urgency ||
		    urgency >= URGENCY_BEST_EFFORT)
			return;
		if (is_waited_for(queue, cpu, cpu_count)) {
			set_slice(task, 0);
			COUNT(preemptions);
			return;
		}
		not_here |= 1ULL << queue;
	}
}

/* What was planned for a CPU ends, and it is to look for work. */
static int post_over(void *map, u32 *cpu, struct post *post)
{
	u64 now = bpf_ktime_get_ns();

	if (now < post->ends_at)
		bpf_timer_start(&post->timer, post->ends_at - now, BPF_F_TIMER_CPU_PIN);
	else if (post->ends_at)
		scx_bpf_kick_cpu(*cpu, SCX_KICK_PREEMPT);
	return 0;
}

static __always_inline s32 init_posts(void)
{
	struct post *post;
	u32 cpu;

	cpu_count = scx_bpf_nr_cpu_ids();
	if (cpu_count > MAX_CPUS)
		return -7; /* E2BIG */
	bpf_for(cpu, 0, (u32)cpu_count)
	{
		post = post_at(cpu);
		if (!post)
			return -22; /* EINVAL */
		post->urgency = URGENCY_IDLE;
		bpf_timer_init(&post->timer, &posts, CLOCK_MONOTONIC);
		bpf_timer_set_callback(&post->timer, post_over);
	}
	return 0;
}

#endif
