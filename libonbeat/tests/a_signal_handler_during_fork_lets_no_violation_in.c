/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A signal handler that runs while its thread forks may use protected sections and blocks: a
 * deadline that passes during the fork is not thrown before the library has let go of its lock.
 *
 * A function for pthread_atfork(3) that was registered before the process's first block runs while
 * the library holds that lock.
 */
#include <onbeat/within.h>

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

static volatile bool prepares, compute_first;

static void use_a_section(int number)
{
	(void)number;
	onbeat_within_disable();
	onbeat_within_enable();
}

static void use_a_block(int number)
{
	(void)number;
	onbeat_try {
	}
	onbeat_handle
	onbeat_end;
}

static void (*const handlers[])(int) = { use_a_section, use_a_block };

static void before_fork(void)
{
	prepares = true;
	if (compute_first)
		compute_ns(ONBEAT_MS(60));
	raise(SIGUSR1);
	compute_ns(ONBEAT_MS(60));
	prepares = false;
}

static void wait_for(pid_t child)
{
	int status;

	check(waitpid(child, &status, 0) == child && status == 0);
}

static void fork_past_a_deadline(void)
{
	volatile pid_t child = -1;
	volatile int violated = 0;

	onbeat_within_disable();
	onbeat_try_within_rel (ONBEAT_MS(30)) {
		child = fork();
	}
	onbeat_finally {
		check(!prepares);
		if (child == 0)
			_exit(0);
	}
	onbeat_handle
		onbeat_when (onbeat_deadline_violation) {
			violated++;
		}
	onbeat_end;
	onbeat_within_enable();
	check(violated == 1 && child > 0);
	wait_for(child);
}

/* In musl a program that leaves a function of pthread_atfork(3) by a jump cannot fork again. */
static void fork_past_a_deadline_unprotected(void)
{
#ifdef __GLIBC__
	onbeat_try_within_rel (ONBEAT_MS(30)) {
		pid_t child = fork();

		if (child == 0)
			_exit(0);
		wait_for(child);
	}
	onbeat_handle
		onbeat_when (onbeat_deadline_violation) {
			check(!prepares);
		}
	onbeat_end;
#endif
}

static void fork_once(void)
{
	pid_t child = fork();

	check(child >= 0);
	if (child == 0)
		_exit(0);
	wait_for(child);
}

/* In a process of its own: one that waits for a lock for ever is ended. */
static void try_it(void (*handler)(int), bool first)
{
	struct sigaction action = { .sa_handler = handler };
	pid_t parent = getpid();

	alarm(60);
	check(pthread_atfork(before_fork, NULL, NULL) == 0);
	check(sigaction(SIGUSR1, &action, NULL) == 0);
	compute_first = first;
	fork_past_a_deadline();
	fork_past_a_deadline_unprotected();
	if (getpid() != parent)
		_exit(0);
	fork_once();
}

int main(void)
{
	for (size_t i = 0; i < 2 * sizeof(handlers) / sizeof(handlers[0]); i++) {
		pid_t child = fork();

		check(child >= 0);
		if (child == 0) {
			try_it(handlers[i / 2], i % 2);
			_exit(0);
		}
		wait_for(child);
	}
	return 0;
}
