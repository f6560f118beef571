/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The tasks that come before all of sched_ext's: fixed priorities, deadlines, and, where only
 * chosen tasks are scheduled, the ordinary ones of the kernel's fair class.
 *
 * Such a task takes its CPU without a word. The task that ran there has slice left, and the kernel
 * keeps it at the head of that CPU's own queue, where no other CPU finds it, and from where it goes
 * on without a question. A scheduler has to ask for its task.
 */
#ifndef ONBEAT_ABOVE_BPF_H
#define ONBEAT_ABOVE_BPF_H

#include "kernel.bpf.h"

extern const struct rq runqueues __ksym;

/*
 * Whether one of those wants the CPU. The kernel counts tasks of the fair class, too, that sleep
 * and will leave its queue soon.
 */
static __always_inline bool wanted_from_above(s32 cpu)
{
	const struct rq *rq = bpf_per_cpu_ptr(&runqueues, cpu);

	if (!rq)
		return false;
	return rq->nr_running - (rq->cfs.h_nr_queued - rq->cfs.h_nr_runnable) > rq->scx.nr_running;
}

/*
 * Whether a CPU that asks for work runs none of ours next. Kernels without a deadline server for
 * sched_ext ask before they look for tasks that come first, and keep what they are given for that
 * CPU until these are done. With that server, being asked means that ours are to run.
 */
static __always_inline bool is_taken_from_above(s32 cpu)
{
	return !bpf_core_field_exists(struct rq, ext_server) && wanted_from_above(cpu);
}

/* Threads of the kernel that serve one CPU: all tasks wait for these. */
static __always_inline bool serves_its_cpu(const struct task_struct *p)
{
	return (p->flags & PF_KTHREAD) && p->nr_cpus_allowed == 1;
}

/*
 * For a task that stops to run and wants to go on: whether one of those is the cause. Then its
 * slice is taken away, and the kernel calls `enqueue` for it. A kernel thread of one CPU stays
 * where it is: no other may take it, and all wait for it.
 */
static __always_inline bool displace(struct task_struct *p, s32 cpu)
{
	if (serves_its_cpu(p) || !wanted_from_above(cpu))
		return false;
	set_slice(p, 0);
	return true;
}

#endif
