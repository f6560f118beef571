/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The iterator that takes in and dismisses tasks: user space asks, and reads it once. Included
 * beside tracepoints.h, in the same way.
 */

static __always_inline void VARIANT(track)(struct task_struct *task)
{
	bool alone = shared.follow == FOLLOW_NOTHING;
	u32 wanted = shared.wanted;
	struct activity *a;

	if ((u32)READ(task, pid) != wanted && (alone || (u32)READ(task, tgid) != wanted))
		return;
	if (READ(task, exit_state) || (alone && READ(task, flags) & PF_KTHREAD))
		return;
	shared.found++;
	a = FIND(task);
	if (a && a->follow < shared.follow)
		a->follow = shared.follow;
	else if (a)
		return;
	else if (VARIANT(keep)(task, task->comm, shared.follow))
		shared.added++;
	else
		shared.refused++;
}

static __always_inline void VARIANT(untrack)(struct task_struct *task)
{
	struct activity *a = FIND(task);

	if (!a || a->state & GONE || !is_unwanted(a->id))
		return;
	shared.found++;
	__sync_fetch_and_sub(&shared.alive, 1);
	FORGET(task);
}

/* Carries out user space's request; runs over every task when the iterator is read. */
SEC("iter/task")
int VARIANT(choose)(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;

	if (!task)
		return 0;
	if (shared.request == REQUEST_TRACK)
		VARIANT(track)(task);
	else
		VARIANT(untrack)(task);
	return 0;
}
