/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A child that is forked while another thread of its parent speaks to the guard can have a guard of
 * its own.
 *
 * The other thread hardly does anything else, so that most forks meet it in the middle of a word.
 */
#include <onbeat/reserve.h>

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../src/reservation.h"
#include "check.h"

#define FORKS 200
#define NO_THREAD 0x10000000

static _Atomic bool over;
static _Atomic int spoken;

static void speak(void)
{
	const struct onbeat_guarded nobody = { .tid = NO_THREAD, .started = 1 };

	check(onbeat_guard_(&nobody) == 0);
	onbeat_unguard_(&nobody);
}

static void *speak_all_the_time(void *nothing)
{
	while (!over) {
		speak();
		spoken++;
	}
	return nothing;
}

int main(void)
{
	pthread_t speaker;

	check(pthread_create(&speaker, NULL, speak_all_the_time, NULL) == 0);
	for (int n = 0; n < FORKS; n++) {
		int before = spoken, status;
		pid_t child;

		while (spoken == before)
			usleep(10);
		child = fork();
		check(child >= 0);
		if (child == 0) {
			/* One that waits for ever is ended. */
			alarm(60);
			speak();
			_exit(0);
		}
		check(waitpid(child, &status, 0) == child);
		check(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	}
	over = true;
	check(pthread_join(speaker, NULL) == 0);
	return 0;
}
