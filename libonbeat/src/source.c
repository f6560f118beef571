/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A source wakes a thread when a constraint expires: a thread has one for deadlines and one for
 * execution time, each set to the earliest expiry of all the blocks it is in, so that entering a
 * block whose expiry is not the earliest costs no system call.
 *
 * Execution time is watched by perf's task clock (perf_clock.c). Where that does not watch the
 * kernel, or cannot be had, the CPU-time timer is set as well, which is looked at on the
 * scheduler's tick (section 6.6 of the paper).
 */
#include "within.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int onbeat_signal_;

/*
 * One that is handled belongs to the program, or to another copy of this library, which a plugin
 * may have: while the handler runs all others are blocked, for that copy's might jump out of it
 * before it has noted that it came. glibc keeps the first two for itself.
 */
int onbeat_take_signal_(void (*handler)(int, siginfo_t *, void *))
{
	struct sigaction action = { 0 }, before;

	action.sa_sigaction = handler;
	action.sa_flags = SA_SIGINFO | SA_NODEFER | SA_RESTART;
	for (int number = SIGRTMIN + 5; number <= SIGRTMAX; number++) {
		if (sigaction(number, NULL, &before) ||
		    (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN))
			continue;
		sigemptyset(&action.sa_mask);
		for (int other = SIGRTMIN + 5; other <= SIGRTMAX; other++) {
			if (other != number)
				sigaddset(&action.sa_mask, other);
		}
		if (sigaction(number, &action, NULL) == 0)
			return number;
	}
	return -EBUSY;
}

static int open_timer(struct onbeat_thread *thread, struct onbeat_source *source, clockid_t clock)
{
	int error = source->has_timer ? 0 : onbeat_notify_timer_(thread, clock, &source->timer);

	if (!error)
		source->has_timer = true;
	return error;
}

/* A block without a timer would never be interrupted. */
static void demand(int error)
{
	if (!error)
		return;
	fprintf(stderr, "onbeat: no timer for this thread: %s (see RLIMIT_SIGPENDING)\n",
		strerror(-error));
	abort();
}

static void set_timer(struct onbeat_source *source, int64_t expires_ns)
{
	struct itimerspec when = { 0 };

	if (expires_ns != INT64_MAX) {
		/* Zero would disarm. */
		int64_t ns = expires_ns > 0 ? expires_ns : 1;

		when.it_value.tv_sec = ns / 1000000000;
		when.it_value.tv_nsec = ns % 1000000000;
	}
	timer_settime(source->timer, TIMER_ABSTIME, &when, NULL);
}

void onbeat_deadline_arm_(struct onbeat_thread *thread, int64_t expires_ns)
{
	struct onbeat_source *source = &thread->deadline;

	source->armed_ns = expires_ns;
	source->uncertain = false;
	if (expires_ns != INT64_MAX) {
		demand(open_timer(thread, source, CLOCK_MONOTONIC));
		onbeat_unblock_();
	}
	if (source->has_timer)
		set_timer(source, expires_ns);
}

int onbeat_wcet_open_(struct onbeat_thread *thread)
{
	struct onbeat_source *source = &thread->wcet;

	if (!source->has_clock && !source->has_timer)
		source->has_clock = onbeat_perf_clock_open_(&source->clock);
	if (source->has_clock && source->clock.in_kernel)
		return 0;
	return open_timer(thread, source, CLOCK_THREAD_CPUTIME_ID);
}

void onbeat_wcet_arm_(struct onbeat_thread *thread, int64_t expires_ns)
{
	struct onbeat_source *source = &thread->wcet;

	source->armed_ns = expires_ns;
	source->uncertain = false;
	if (expires_ns != INT64_MAX) {
		demand(onbeat_wcet_open_(thread));
		onbeat_unblock_();
	}
	if (source->has_clock && !onbeat_perf_clock_set_(&source->clock, expires_ns)) {
		/* The program has closed it: another one, or the timer. */
		source->has_clock = false;
		demand(onbeat_wcet_open_(thread));
		if (source->has_clock)
			onbeat_perf_clock_set_(&source->clock, expires_ns);
	}
	if (source->has_timer)
		set_timer(source, expires_ns);
}

static void close_source(struct onbeat_source *source, bool after_fork)
{
	if (source->has_clock)
		onbeat_perf_clock_close_(&source->clock);
	if (source->has_timer && !after_fork)
		timer_delete(source->timer);
	source->has_clock = false;
	source->has_timer = false;
	source->armed_ns = INT64_MAX;
}

/* A child inherits perf's descriptors, though not what they count, and no timers at all. */
void onbeat_sources_close_(struct onbeat_thread *thread, bool after_fork)
{
	close_source(&thread->deadline, after_fork);
	close_source(&thread->wcet, after_fork);
}

enum onbeat_wcet_source onbeat_wcet_source(void)
{
	struct onbeat_thread *thread = onbeat_thread_();

	demand(onbeat_wcet_open_(thread));
	if (!thread->wcet.has_clock)
		return ONBEAT_WCET_CPU_TIMER;
	return thread->wcet.clock.in_kernel ? ONBEAT_WCET_PERF_CLOCK : ONBEAT_WCET_USER_CLOCK;
}

int onbeat_within_prepare(void)
{
	struct onbeat_thread *thread;
	int error;

	thread = onbeat_make_thread_(&error);
	if (!error)
		error = open_timer(thread, &thread->deadline, CLOCK_MONOTONIC);
	if (!error)
		error = onbeat_wcet_open_(thread);
	return error;
}
