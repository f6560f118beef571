/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The messages of programs about themselves, and of the loader about plans: both from outside of
 * the scheduler's operations.
 */
#ifndef ONBEAT_GRACE_SAID_BPF_H
#define ONBEAT_GRACE_SAID_BPF_H

#include "cpus.bpf.h"
#include "../../../crates/sense/src/bpf/mark.h"

/* The marks (mark.h) of soft real-time programs. */
SEC("tp_btf/task_prctl_unknown")
int BPF_PROG(soft_realtime, int option, unsigned long kind, unsigned long period_ns,
	     unsigned long permille)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct member *member = member_of(task);
	u64 now = bpf_ktime_get_ns();
	unsigned long interrupts;

	if (option != MARK || !member)
		return 0;
	switch ((u32)kind) {
	case MARK_REALTIME_STARTED:
		/*
		 * It may be said with each job, and what cannot be told now is told with a later
		 * one.
		 */
		if (member->period_ns == period_ns && member->permille == permille)
			break;
		if (!may_send(member, GRACE_START, now))
			break;
		member->period_ns = period_ns;
		member->permille = permille;
		send(GRACE_STARTS, task->pid, period_ns, permille);
		break;
	case MARK_JOB_ENDED:
		/*
		 * The scheduler's operations, which shut interrupts out, make of it what it means.
		 */
		bpf_local_irq_save(&interrupts);
		member->says = true;
		member->ended = true;
		member->finished++;
		member->finished_ns = member->charged_ns + policy_minus(now, member->charged_at_ns);
		bpf_local_irq_restore(&interrupts);
		break;
	case MARK_REALTIME_EXITED:
		member->says = false;
		/* Once after each start; of a thread that said none, while it has a plan. */
		if (!member->period_ns && !(member->slot < NO_PLAN && may_send(member, 1, now)))
			break;
		member->period_ns = 0;
		send(GRACE_LEAVES, task->pid, 0, 0);
		break;
	}
	return 0;
}

static bool is_gone(u32 tid)
{
	struct task_struct *task = bpf_task_from_pid(tid);
	bool exits;

	if (!task)
		return true;
	exits = task->flags & PF_EXITING;
	bpf_task_release(task);
	return exits;
}

/* Run by the loader: gives a thread a plan, from its next job on. */
SEC("syscall")
int set_plan(struct grace_call *call)
{
	struct planned *planned = plan_at(call->slot);
	u32 slot = call->slot, tid = call->tid;
	struct grace_plan plan = call->plan;
	u32 *held = bpf_map_lookup_elem(&threads, &tid);
	bool is_new = !held || *held != slot;

	if (!planned)
		return -22; /* EINVAL */
	bpf_spin_lock(&planned->lock);
	grace_set_plan(&planned->task, &plan);
	if (is_new)
		planned->generation++;
	bpf_spin_unlock(&planned->lock);
	planned->is_set = true;
	if (bpf_map_update_elem(&threads, &tid, &slot, BPF_ANY))
		return -7; /* E2BIG */
	if (!held)
		policy_add(&planned_count, 1);
	/*
	 * exit_task forgets threads that end from now on; this, those that have ended by now,
	 * perhaps before they were known here.
	 */
	if (is_gone(tid))
		forget(tid);
	return 0;
}

/*
 * Run by the loader: the thread is of the rest from now on, and the slot may be another's. If it
 * waits in the slot's queue, it stays there until it has run: at best effort, or with the key of
 * the slot's holder by then.
 */
SEC("syscall")
int forget_plan(struct grace_call *call)
{
	struct planned *planned = plan_at(call->slot);
	u64 now = bpf_ktime_get_ns();
	u32 tid = call->tid;

	if (!planned)
		return -22; /* EINVAL */
	forget(tid);
	bpf_spin_lock(&planned->lock);
	planned->generation++;
	grace_changes_hands(&planned->task, now);
	bpf_spin_unlock(&planned->lock);
	planned->job = false;
	return 0;
}

#endif
