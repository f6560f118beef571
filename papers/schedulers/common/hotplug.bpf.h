/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * CPUs come and go while a scheduler is in force. They all share the queues; without these two
 * operations, the kernel would end the scheduler then.
 *
 * The kernel asks no scheduler for work on behalf of a CPU that leaves, but waits until its queue
 * is empty. So tasks there are moved into a queue that the kernel looks into itself, and are sent
 * on from there.
 *
 * The scheduler that includes this says by QUEUES how many queues there are, numbered from 0, and
 * defines forget_cpu.
 */
#ifndef ONBEAT_HOTPLUG_BPF_H
#define ONBEAT_HOTPLUG_BPF_H

#include "kernel.bpf.h"

bool scx_bpf_dsq_move(struct bpf_iter_scx_dsq *it, struct task_struct *p, u64 dsq_id,
		      u64 enq_flags) __ksym;

/* The walk of the loop that this stands in, as libbpf names it. */
#define THIS_WALK (&___it)

static bool is_away[MOST_CPUS];

/*
 * A CPU that leaves must not be kicked on its last way to sleep: nothing would come of it before it
 * sleeps, and once it is back the kernel takes what was queued then for on its way, and has it do
 * no such work any more.
 */
static __always_inline void kick_unless_away(s32 cpu, u64 flags)
{
	if (!is_away[(u32)cpu & (MOST_CPUS - 1)])
		scx_bpf_kick_cpu(cpu, flags);
}

SEC("struct_ops/cpu_online")
void BPF_PROG(cpu_online, s32 cpu)
{
	is_away[(u32)cpu & (MOST_CPUS - 1)] = false;
}

/* Global, so that the verifier looks at it once and not for each way to it. */
__noinline int leave_queue(u64 queue, s32 cpu)
{
	struct task_struct *p;

	bpf_for_each(scx_dsq, p, queue, 0)
	{
		if (scx_bpf_task_cpu(p) == cpu)
			scx_bpf_dsq_move(THIS_WALK, p, SCX_DSQ_GLOBAL, 0);
	}
	return 0;
}

SEC("struct_ops/cpu_offline")
void BPF_PROG(cpu_offline, s32 cpu)
{
	u64 queue;

	is_away[(u32)cpu & (MOST_CPUS - 1)] = true;
	forget_cpu(cpu);
	bpf_for(queue, 0, QUEUES) leave_queue(queue, cpu);
}

#endif
