/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A thread's state: made when the thread first uses the library, given back when it ends. The
 * library is linked with `-z nodelete`: dlclose leaves it mapped, because a signal may be on its
 * way.
 */
#include "within.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Thread_local volatile sig_atomic_t onbeat_protections_ ONBEAT_TLS;
static _Thread_local struct onbeat_thread *current ONBEAT_TLS;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t at_exit;
static bool has_key;
static int start_error;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct onbeat_thread *threads;

static void unlink_thread(struct onbeat_thread *thread)
{
	*thread->previous = thread->next;
	if (thread->next)
		thread->next->previous = thread->previous;
}

static void thread_ended(void *argument)
{
	struct onbeat_thread *thread = argument;

	onbeat_enter_critical_(thread);
	onbeat_sources_close_(thread, false);
	onbeat_notify_ended_(thread);
	current = NULL;
	pthread_mutex_lock(&lock);
	unlink_thread(thread);
	pthread_mutex_unlock(&lock);
	free(thread);
}

/* In a child: the calling thread is the only one, and its sources are closed. */
static void forget_other_threads(void)
{
	struct onbeat_thread *thread = threads;

	while (thread) {
		struct onbeat_thread *next = thread->next;

		onbeat_sources_close_(thread, true);
		if (thread != current)
			free(thread);
		thread = next;
	}
	threads = current;
	pthread_mutex_init(&lock, NULL);
	if (!current)
		return;
	current->next = NULL;
	current->previous = &threads;
	current->self = pthread_self();
}

static void before_fork(void)
{
	/* First, for a violation that left this function by a jump would leave the lock taken. */
	if (current)
		onbeat_enter_critical_(current);
	pthread_mutex_lock(&lock);
	if (current)
		current->cpu_at_fork_ns = onbeat_cpu_now_();
}

static void after_fork_in_parent(void)
{
	pthread_mutex_unlock(&lock);
	/* Last, because it may leave by a jump. */
	if (current)
		onbeat_leave_critical_(current);
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

/*
 * The child keeps the blocks that the forking thread was in. Timers are not inherited, and its
 * CPU-time clock starts at zero.
 */
static void after_fork_in_child(void)
{
	const struct onbeat_block *top = current ? onbeat_top_(current) : NULL;

	forget_other_threads();
	onbeat_notify_forked_();
	if (!current)
		return;
	move_wcet_limits(current);
	if (top) {
		onbeat_deadline_arm_(current, top->earliest_deadline_ns);
		onbeat_wcet_arm_(current, top->earliest_wcet_ns);
	}
	onbeat_leave_critical_(current);
}

/* A violation that jumped out of exit(3) would have the program go on. */
static void process_ends(void)
{
	if (current)
		onbeat_enter_critical_(current);
}

/*
 * At the start of the program, because libc calls the destructors of a thread's data in the order
 * in which their keys were made: a deadline of a thread that ends is not to pass while another
 * one's is called.
 */
__attribute__((constructor)) static void make_key(void)
{
	has_key = pthread_key_create(&at_exit, thread_ended) == 0;
}

static void start(void)
{
	if (!has_key || pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child) ||
	    atexit(process_ends) || at_quick_exit(process_ends))
		start_error = -ENOMEM;
	else
		start_error = onbeat_notify_install_();
}

struct onbeat_thread *onbeat_make_thread_(int *error)
{
	struct onbeat_thread *thread;

	*error = 0;
	if (current)
		return current;
	pthread_once(&once, start);
	*error = start_error;
	if (*error)
		return NULL;
	thread = calloc(1, sizeof(*thread));
	if (!thread || pthread_setspecific(at_exit, thread)) {
		free(thread);
		*error = -ENOMEM;
		return NULL;
	}
	thread->self = pthread_self();
	thread->caught = &onbeat_nothing_;
	thread->deadline.armed_ns = INT64_MAX;
	thread->wcet.armed_ns = INT64_MAX;
	*error = onbeat_notify_thread_(thread);
	if (*error) {
		pthread_setspecific(at_exit, NULL);
		free(thread);
		return NULL;
	}
	pthread_mutex_lock(&lock);
	thread->next = threads;
	thread->previous = &threads;
	if (threads)
		threads->previous = &thread->next;
	threads = thread;
	pthread_mutex_unlock(&lock);
	current = thread;
	return thread;
}

struct onbeat_thread *onbeat_thread_if_any_(void)
{
	return current;
}

struct onbeat_thread *onbeat_thread_(void)
{
	struct onbeat_thread *thread = current;
	int error;

	if (!thread && !(thread = onbeat_make_thread_(&error))) {
		fprintf(stderr, "onbeat: this thread's first block cannot be made: %s\n",
			strerror(-error));
		abort();
	}
	return thread;
}
