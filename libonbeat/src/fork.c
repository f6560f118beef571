/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Forks.
 *
 * A forked child keeps the blocks that the forking thread was in, with their constraints: timers
 * are not inherited, so they are made anew, and the child's CPU-time clock starts at zero, so its
 * execution-time limits are moved.
 */
#include "within.h"

static void before_fork(void)
{
	struct onbeat_thread *thread = onbeat_thread_if_any_();

	/*
	 * Critical first: a violation that left this function by a jump would leave the lock taken.
	 */
	if (thread)
		onbeat_enter_critical_(thread);
	onbeat_threads_lock_();
	if (thread)
		thread->cpu_at_fork_ns = onbeat_cpu_now_();
}

static void after_fork_in_parent(void)
{
	struct onbeat_thread *thread = onbeat_thread_if_any_();

	/* First, because what comes next may leave by a jump. */
	onbeat_threads_unlock_();
	if (thread)
		onbeat_leave_critical_(thread);
}

/* How far the child's CPU-time clock lies behind the one that the limits were read from. */
static void move_wcet_limits(struct onbeat_thread *thread)
{
	int64_t back_ns = thread->cpu_at_fork_ns - onbeat_cpu_now_();

	for (int i = 0; i < thread->depth; i++) {
		struct onbeat_block *block = thread->frames[i].block;

		if (block->constraint == ONBEAT_WITHIN_WCET)
			block->expires_ns -= back_ns;
		if (block->earliest_wcet_ns != INT64_MAX)
			block->earliest_wcet_ns -= back_ns;
	}
}

static void after_fork_in_child(void)
{
	struct onbeat_thread *thread = onbeat_thread_if_any_();
	const struct onbeat_block *top = thread ? onbeat_top_(thread) : NULL;

	onbeat_threads_forked_();
	onbeat_notify_forked_();
	if (!thread)
		return;
	move_wcet_limits(thread);
	if (top) {
		onbeat_deadline_arm_(thread, top->earliest_deadline_ns);
		onbeat_wcet_arm_(thread, top->earliest_wcet_ns);
	}
	onbeat_leave_critical_(thread);
}

int onbeat_fork_install_(void)
{
	return -pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}
