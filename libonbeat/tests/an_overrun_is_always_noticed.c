/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * No overrun passes as in time, whichever source notices it: a block that ends after its deadline
 * or beyond its limit is violated there at the latest, also if no notification comes.
 */
#include <onbeat/within.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "../src/within.h"
#include "check.h"

#define NOBODY 65534

static volatile int completed, begun, inner_violated;
static bool blocks_signals;

/* A machine that stalls may have a block expire before that. */
static void begin(void)
{
	sigset_t all;

	sigfillset(&all);
	check(!blocks_signals || pthread_sigmask(SIG_SETMASK, &all, NULL) == 0);
	begun++;
}

static void overrun_a_deadline(void)
{
	check_left_by(onbeat_deadline_violation, onbeat_try_within_rel (ONBEAT_MS(1)), begin(); compute_ns(ONBEAT_MS(2));
		      completed++);
}

static void use_cpu_time(int64_t ns)
{
	const int64_t end_ns = cpu_now_ns() + ns;

	while (cpu_now_ns() < end_ns)
		;
}

static void overrun_a_limit(void)
{
	check_left_by(onbeat_wcet_violation, onbeat_try_within_wcet (ONBEAT_MS(1)), begin(); use_cpu_time(ONBEAT_US(1050));
		      completed++);
}

/* The block around it has a deadline that comes sooner; both are told. */
static void overrun_two_deadlines(void)
{
	onbeat_try_within_rel (ONBEAT_US(500)) {
		begin();
		check_left_by(onbeat_deadline_violation, onbeat_try_within_rel (ONBEAT_MS(1)), compute_ns(ONBEAT_MS(2)));
		inner_violated++;
		compute_ns(ONBEAT_MS(1));
		completed++;
	}
	onbeat_handle
		onbeat_when (onbeat_deadline_violation) {
		}
	onbeat_end;
}

static void repeat(void (*overrun)(void))
{
	for (int i = 0; i < 20; i++)
		overrun();
}

static void limit(int resource, rlim_t most)
{
	struct rlimit now;

	check(getrlimit(resource, &now) == 0);
	now.rlim_cur = most < now.rlim_max ? most : now.rlim_max;
	check(setrlimit(resource, &now) == 0);
}

/* Perf's clock is a descriptor: without one to spare, the library takes the CPU-time timer. */
static void *by_the_timer(void *unused)
{
	limit(RLIMIT_NOFILE, 0);
	check(onbeat_wcet_source() == ONBEAT_WCET_CPU_TIMER);
	limit(RLIMIT_NOFILE, RLIM_INFINITY);
	repeat(overrun_a_limit);
	return unused;
}

static void *with_all_signals_blocked(void *unused)
{
	blocks_signals = true;
	completed = begun = 0;
	repeat(overrun_a_deadline);
	repeat(overrun_a_limit);
	check(completed == begun);
	completed = begun = 0;
	repeat(overrun_two_deadlines);
	check(completed == begun && inner_violated == begun);
	blocks_signals = false;
	return unused;
}

static void take_note(int number)
{
	(void)number;
}

static void *with_its_signal_taken_by_the_program(void *unused)
{
	struct sigaction action = { .sa_handler = take_note }, before;

	check(sigaction(ONBEAT_SIGNAL, &action, &before) == 0);
	completed = 0;
	repeat(overrun_a_deadline);
	repeat(overrun_a_limit);
	check(completed == 40);
	check(sigaction(ONBEAT_SIGNAL, &before, NULL) == 0);
	return unused;
}

static int descriptor;

/* As with closefrom(3): what has that number then stays open when the thread ends. */
static void *by_a_clock_that_the_program_closed(void *unused)
{
	/* The lowest that is free is perf's, if this thread has its clock. */
	descriptor = dup(STDERR_FILENO);
	check(close(descriptor) == 0);
	overrun_a_limit();
	check(dup2(STDERR_FILENO, descriptor) == descriptor);
	repeat(overrun_a_limit);
	return unused;
}

static void *after_a_preparation(void *unused)
{
	limit(RLIMIT_SIGPENDING, 0);
	check(onbeat_within_prepare() == -EAGAIN);
	limit(RLIMIT_SIGPENDING, RLIM_INFINITY);
	check(onbeat_within_prepare() == 0);
	/* All there is to make has been made. */
	limit(RLIMIT_SIGPENDING, 0);
	check(onbeat_within_prepare() == 0);
	onbeat_try_within_rel (ONBEAT_S(100)) {
		onbeat_try_within_wcet (ONBEAT_S(100)) {
		}
		onbeat_handle
		onbeat_end;
	}
	onbeat_handle
	onbeat_end;
	limit(RLIMIT_SIGPENDING, RLIM_INFINITY);
	overrun_a_deadline();
	return unused;
}

static void use_a_section(int number)
{
	(void)number;
	onbeat_within_disable();
	onbeat_within_enable();
}

/* It allocates and locks nothing, so that a signal handler may have one. */
static void *in_a_section_that_began_before_the_threads_state(void *unused)
{
	check(signal(SIGUSR1, use_a_section) != SIG_ERR && raise(SIGUSR1) == 0);
	onbeat_within_disable();
	check(!onbeat_thread_if_any_());
	completed = 0;
	check_left_by(onbeat_deadline_violation, onbeat_try_within_rel (ONBEAT_MS(2)), compute_ns(ONBEAT_MS(20)); completed++;
		      onbeat_within_enable(); completed++);
	onbeat_within_enable();
	check(completed == 1);
	return unused;
}

#define VIOLATED_AFTER(ns)                                                                                \
	do {                                                                                              \
		check_left_by(onbeat_deadline_violation, onbeat_try_within_rel (ns), compute_for_ever()); \
		check_left_by(onbeat_deadline_violation, onbeat_try_within_abs (ns), compute_for_ever()); \
		check_left_by(onbeat_wcet_violation, onbeat_try_within_wcet (ns), compute_for_ever());    \
	} while (0)

#define NEVER_VIOLATED(constrained)                      \
	constrained (INT64_MAX) {                        \
		compute_ns(ONBEAT_MS(1));                \
	}                                                \
	onbeat_handle                                    \
		onbeat_when (onbeat_exception) {         \
			check(0);                        \
		}                                        \
	onbeat_end

/* A limit that no clock can read is long past, or never comes. */
static void *at_the_ends_of_the_range(void *unused)
{
	static const int64_t past[] = { INT64_MIN, INT64_MIN + 1, -ONBEAT_S(1), -1, 0 };

	for (volatile size_t i = 0; i < sizeof(past) / sizeof(past[0]); i++)
		VIOLATED_AFTER(past[i]);
	NEVER_VIOLATED(onbeat_try_within_rel);
	NEVER_VIOLATED(onbeat_try_within_abs);
	NEVER_VIOLATED(onbeat_try_within_wcet);
	return unused;
}

static bool may_have_clock(int exclude_kernel)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_TASK_CLOCK,
		.size = sizeof(attr),
		.exclude_kernel = exclude_kernel & 1,
	};
	int fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

static void call_the_kernel(void)
{
	const int64_t end_ns = now_ns() + ONBEAT_S(60);

	while (now_ns() < end_ns) {
		for (int i = 0; i < 1000; i++)
			syscall(SYS_getppid);
	}
	check(0);
}

/* Without perf's clock in the kernel the CPU-time timer is beside it: both notice. */
static void by_an_ordinary_user(void)
{
	enum onbeat_wcet_source expected = ONBEAT_WCET_CPU_TIMER;

	check(geteuid() != 0 || setuid(NOBODY) == 0);
	if (may_have_clock(0))
		expected = ONBEAT_WCET_PERF_CLOCK;
	else if (may_have_clock(1))
		expected = ONBEAT_WCET_USER_CLOCK;
	check(onbeat_wcet_source() == expected);
	for (volatile int i = 0; i < 10; i++) {
		check_left_by(onbeat_wcet_violation, onbeat_try_within_wcet (ONBEAT_MS(3)), compute_for_ever());
		check_left_by(onbeat_wcet_violation, onbeat_try_within_wcet (ONBEAT_MS(3)), call_the_kernel());
	}
}

int main(void)
{
	void *(*const threads[])(void *) = {
		by_the_timer,
		with_all_signals_blocked,
		with_its_signal_taken_by_the_program,
		by_a_clock_that_the_program_closed,
		after_a_preparation,
		in_a_section_that_began_before_the_threads_state,
		at_the_ends_of_the_range,
	};
	const char *form = getenv("ONBEAT_FORM");

	/* The portable form has no perf. */
	if (!form || strcmp(form, "posix"))
		in_a_child(by_an_ordinary_user);
	for (size_t i = 0; i < sizeof(threads) / sizeof(threads[0]); i++)
		in_a_thread(threads[i]);
	check(fcntl(descriptor, F_GETFD) >= 0);
	return 0;
}
