/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The state of the CPUs of a scheduler with reservations, and the choice of one for urgent work.
 *
 * The scheduler that includes this has a struct post, its state of a CPU, with an urgency in it:
 * the deadline, or key, of what the CPU runs, or one of these; and has defined QUEUES.
 */
#ifndef ONBEAT_URGENCY_BPF_H
#define ONBEAT_URGENCY_BPF_H

#include "scheduler.bpf.h"
#include "above.bpf.h"

void bpf_rcu_read_lock(void) __ksym;
void bpf_rcu_read_unlock(void) __ksym;

#define MAX_CPUS 256
/* How many of those who wait in a queue are looked at for the CPUs that they may use. */
#define MOST_CALLED_FOR 64
/* From here on no work interrupts other work: best effort, the rest, and idle. */
#define URGENCY_BEST_EFFORT (1ULL << 63)
#define URGENCY_REST (~0ULL - 1)
#define URGENCY_IDLE (~0ULL)

#define UNLIMITED (~0ULL)

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MAX_CPUS);
	__type(key, u32);
	__type(value, struct post);
} posts SEC(".maps");

static s32 cpu_count;

static __always_inline struct post *post_at(u32 cpu)
{
	return bpf_map_lookup_elem(&posts, &cpu);
}

/*
 * For how long a task that begins to run may do so at most: with what is left of its slice, which
 * may have been taken from it, if it stopped only to be changed. With a new one, a task that
 * changes itself all the time would never lose its CPU.
 */
static __always_inline u64 may_go_on_for(const struct task_struct *task, bool *changes)
{
	if (!*changes)
		return UNLIMITED;
	*changes = false;
	return task->scx.slice;
}

/*
 * Has work of this urgency done at once: on an idle CPU, or on the one with the least urgent work.
 */
static void urge(u64 urgency, const struct cpumask *allowed)
{
	u64 least = urgency;
	struct post *post;
	s32 cpu, where = -1;

	if (kick_idle(allowed))
		return;
	bpf_for(cpu, 0, cpu_count)
	{
		post = post_at(cpu);
		if (!post || post->urgency == URGENCY_IDLE || post->urgency <= least)
			continue;
		if (!is_in(cpu, allowed))
			continue;
		least = post->urgency;
		where = cpu;
	}
	if (where < 0)
		return;
	post = post_at(where);
	if (!post)
		return;
	/* The next one in a hurry looks for another CPU. */
	post->urgency = urgency;
	COUNT(preemptions);
	scx_bpf_kick_cpu(where, SCX_KICK_PREEMPT);
}

/*
 * Those who wait in a queue may run again: has CPUs come that they may use. Global, so that the
 * verifier looks at it once and not for each way to it.
 */
__noinline int urge_for_waiting(u64 queue, u64 urgency)
{
	struct task_struct *task;
	u32 looked_at = 0;

	/* A timer's program counts as one that may sleep on some kernels. */
	bpf_rcu_read_lock();
	bpf_for_each(scx_dsq, task, queue, 0)
	{
		urge(urgency, task->cpus_ptr);
		if (++looked_at >= MOST_CALLED_FOR)
			break;
	}
	bpf_rcu_read_unlock();
	return 0;
}

/*
 * Whether a task waits in the queue that may use this CPU, and at most `most_cpus` of them. Global,
 * so that the verifier looks at it once and not for each way to it.
 */
__noinline int is_waited_for(u64 queue, s32 cpu, s32 most_cpus)
{
	struct task_struct *task;
	u32 looked_at = 0;
	int found = 0;

	bpf_for_each(scx_dsq, task, queue, 0)
	{
		if (task->nr_cpus_allowed <= most_cpus && is_in(cpu, task->cpus_ptr)) {
			found = 1;
			break;
		}
		if (++looked_at >= MOST_CALLED_FOR)
			break;
	}
	return found;
}

static __always_inline void forget_cpu(s32 cpu)
{
	struct post *post = post_at(cpu);

	if (post)
		post->urgency = URGENCY_IDLE;
}

#include "hotplug.bpf.h"

#endif
