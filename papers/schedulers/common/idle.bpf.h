/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A waiting task looks for another CPU when one is taken. A CPU looks for one before it sleeps, and
 * at each tick.
 *
 * The scheduler that includes this has queues for tasks by urgency, numbered from 0, and REST_QUEUE
 * behind these for all others; and has defined first_in_line before: the queue, if any, from which
 * the most urgent one comes.
 */
#ifndef ONBEAT_IDLE_BPF_H
#define ONBEAT_IDLE_BPF_H

#include "urgency.bpf.h"

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

#endif
