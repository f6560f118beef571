/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Needed by every test program: a check that says where it failed, and ways to let time pass. */
#ifndef ONBEAT_TESTS_CHECK_H
#define ONBEAT_TESTS_CHECK_H

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SKIPPED 77
#define MS INT64_C(1000000)

#define check(condition)                                                                       \
	do {                                                                                   \
		if (!(condition)) {                                                            \
			fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
			exit(1);                                                               \
		}                                                                              \
	} while (0)

/* A block that begins with `constrained` and does the rest is left by an exception of this type. */
#define check_left_by(type, constrained, ...)       \
	do {                                        \
		volatile int handled_here = 0;      \
		constrained {                       \
			__VA_ARGS__;                \
		}                                   \
		onbeat_handle                       \
			onbeat_when (type) {        \
				handled_here = 1;   \
			}                           \
		onbeat_end;                         \
		check(handled_here);                \
	} while (0)

/* What a failed test prints last is its name. */
#define run_test(test) (puts(#test), fflush(stdout), test())

static inline int64_t read_clock(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static inline int64_t now_ns(void)
{
	return read_clock(CLOCK_MONOTONIC);
}

static inline int64_t cpu_now_ns(void)
{
	return read_clock(CLOCK_THREAD_CPUTIME_ID);
}

/* Computes until something else ends it; if nothing does for a minute, that is a failure. */
static inline void compute_for_ever(void)
{
	int64_t end_ns = now_ns() + INT64_C(60000000000);

	while (now_ns() < end_ns)
		;
	fprintf(stderr, "nothing interrupted this computation for a minute\n");
	exit(1);
}

static inline void compute_ns(int64_t ns)
{
	int64_t end_ns = now_ns() + ns;

	while (now_ns() < end_ns)
		;
}

static inline void in_a_thread(void *(*function)(void *))
{
	pthread_t thread;

	check(pthread_create(&thread, NULL, function, NULL) == 0);
	check(pthread_join(thread, NULL) == 0);
}

static inline void wait_for(pid_t child)
{
	int status;

	check(child > 0 && waitpid(child, &status, 0) == child);
	check(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* One that does not end within a minute is killed. */
static inline void in_a_child(void (*function)(void))
{
	pid_t child = fork();

	if (child == 0) {
		alarm(60);
		function();
		_exit(0);
	}
	wait_for(child);
}

#endif
