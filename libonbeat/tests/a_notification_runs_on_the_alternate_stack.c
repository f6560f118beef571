/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * In a thread with an alternate stack for signals (sigaltstack(2)) a notification uses that, as runtimes with
 * small stacks demand; violations leave it, time after time, also from the program's own handler on it.
 */
#include <onbeat/within.h>

#include <pthread.h>
#include <signal.h>

#include "../src/within.h"
#include "check.h"

#define TIMES 20

static volatile int violated, in_handler;

static void compute_in_handler(int number)
{
	(void)number;
	in_handler++;
	compute_for_ever();
}

static void *run(void *stack_memory)
{
	stack_t stack = { .ss_sp = stack_memory, .ss_size = 65536 };
	struct sigaction action = { .sa_handler = compute_in_handler, .sa_flags = SA_ONSTACK | SA_NODEFER };

	check(sigaltstack(&stack, NULL) == 0 && sigaction(SIGUSR1, &action, NULL) == 0);
	for (volatile int i = 0; i < 2 * TIMES; i++) {
		onbeat_try {
			onbeat_try_within_rel (ONBEAT_MS(2)) {
				if (i % 2)
					raise(SIGUSR1);
				compute_for_ever();
			}
			onbeat_finally {
				check(sigaltstack(NULL, &stack) == 0 && !(stack.ss_flags & SS_ONSTACK));
			}
			onbeat_handle
				onbeat_when (onbeat_deadline_violation) {
					violated++;
					onbeat_rethrow();
				}
			onbeat_end;
		}
		onbeat_handle
			onbeat_when (onbeat_deadline_violation) {
				violated++;
			}
		onbeat_end;
	}
	check(violated == 4 * TIMES && in_handler > 0);
	check(sigaction(ONBEAT_SIGNAL, NULL, &action) == 0 && (action.sa_flags & SA_ONSTACK));
	return NULL;
}

int main(void)
{
	static char below[65536];
	char *above = malloc(65536);
	char *const memory[] = { below, above };

	for (size_t i = 0; i < 2; i++) {
		pthread_t thread;

		violated = 0;
		check(pthread_create(&thread, NULL, run, memory[i]) == 0);
		check(pthread_join(thread, NULL) == 0);
	}
	free(above);
	return 0;
}
