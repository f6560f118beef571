/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A program's questions about the blocks it is in: how much time remains, and how deep they nest.
 */
#include "within.h"

int64_t onbeat_remaining(void)
{
	const struct onbeat_thread *thread = onbeat_thread_if_any_();
	const struct onbeat_block *top = thread ? onbeat_top_(thread) : NULL;

	if (!top || top->earliest_deadline_ns == INT64_MAX)
		return ONBEAT_FOREVER;
	return top->earliest_deadline_ns - onbeat_now_();
}

int64_t onbeat_remaining_wcet(void)
{
	const struct onbeat_thread *thread = onbeat_thread_if_any_();
	const struct onbeat_block *top = thread ? onbeat_top_(thread) : NULL;

	if (!top || top->earliest_wcet_ns == INT64_MAX)
		return ONBEAT_FOREVER;
	return top->earliest_wcet_ns - onbeat_cpu_now_();
}

int onbeat_max_depth(void)
{
	return ONBEAT_MAX_DEPTH;
}
