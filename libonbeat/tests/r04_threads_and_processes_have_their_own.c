/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Requirement 4: several threads and several processes use it at once; each gets its own signal. */
#include <onbeat/within.h>

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

#define THREADS 8
#define ROUNDS 20

static void *run(void *argument)
{
	volatile int violations = 0;

	(void)argument;
	for (volatile int i = 0; i < ROUNDS; i++) {
		onbeat_try_within_rel (ONBEAT_US(500)) {
			compute_for_ever();
		}
		onbeat_handle
			onbeat_when (onbeat_deadline_violation) {
				violations++;
			}
		onbeat_end;
	}
	check(violations == ROUNDS);
	return NULL;
}

int main(void)
{
	pthread_t threads[THREADS];
	int status;
	pid_t child = fork();

	check(child >= 0);
	for (int i = 0; i < THREADS; i++)
		check(pthread_create(&threads[i], NULL, run, NULL) == 0);
	for (int i = 0; i < THREADS; i++)
		check(pthread_join(threads[i], NULL) == 0);
	if (child == 0)
		return 0;
	check(waitpid(child, &status, 0) == child);
	check(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	return 0;
}
