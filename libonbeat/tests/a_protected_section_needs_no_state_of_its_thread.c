/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A signal handler may begin and end a protected section in a thread that has never used the
 * library: nothing is allocated or locked for that. The sections of a thread count in its first
 * block, too.
 */
#include <onbeat/within.h>

#include <pthread.h>
#include <signal.h>

#include "../src/within.h"
#include "check.h"

static void use_a_section(int number)
{
	(void)number;
	onbeat_within_disable();
	onbeat_within_enable();
}

static void *be_signalled(void *unused)
{
	raise(SIGUSR1);
	check(!onbeat_thread_if_any_());
	return unused;
}

static void *begin_protected(void *unused)
{
	volatile int completed = 0, violated = 0;

	onbeat_within_disable();
	check(!onbeat_thread_if_any_());
	onbeat_try_within_rel (ONBEAT_MS(2)) {
		compute_ns(ONBEAT_MS(20));
		completed++;
		onbeat_within_enable();
		completed++;
	}
	onbeat_handle
		onbeat_when (onbeat_deadline_violation) {
			violated++;
		}
	onbeat_end;
	onbeat_within_enable();
	check(completed == 1 && violated == 1);
	return unused;
}

int main(void)
{
	void *(*const functions[])(void *) = { be_signalled, begin_protected };
	struct sigaction action = { .sa_handler = use_a_section };

	check(sigaction(SIGUSR1, &action, NULL) == 0);
	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
		pthread_t thread;

		check(pthread_create(&thread, NULL, functions[i], NULL) == 0);
		check(pthread_join(thread, NULL) == 0);
	}
	return 0;
}
