/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Blocks a fixed number of times: 40 times in its first thread, 30 in another, 20 in a child
 * process, and 10 after it has executed itself anew. Or, as the argument says: stop writes its
 * number and stops itself; ends with 0 if it was continued by SIGCONT wait      waits for SIGUSR1,
 * and ends with 5 for-ever  sleeps, and writes its number to standard output
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t heard;

static void hear(int signal)
{
	heard = signal;
}

static void block(int times)
{
	while (times--)
		nanosleep(&(struct timespec){ .tv_nsec = 2000000 }, NULL);
}

static void *other(void *nothing)
{
	(void)nothing;
	pthread_setname_np(pthread_self(), "other");
	block(30);
	return NULL;
}

int main(int count, char **arguments)
{
	const char *what = count > 1 ? arguments[1] : "";

	if (strcmp(what, "again") == 0) {
		block(10);
		return 0;
	}
	if (strcmp(what, "stop") == 0) {
		signal(SIGCONT, hear);
		printf("%d\n", getpid());
		fflush(stdout);
		heard = 0;
		raise(SIGSTOP);
		return heard == SIGCONT ? 0 : 3;
	}
	if (strcmp(what, "wait") == 0) {
		signal(SIGUSR1, hear);
		puts("ready");
		fflush(stdout);
		while (!heard)
			block(1);
		return 5;
	}
	if (strcmp(what, "for-ever") == 0) {
		printf("%d\n", getpid());
		fflush(stdout);
		for (;;)
			block(1000);
	}
	pthread_t thread;

	pthread_create(&thread, NULL, other, NULL);
	block(40);
	pthread_join(thread, NULL);
	pid_t child = fork();

	if (child == 0) {
		block(20);
		_exit(0);
	}
	waitpid(child, NULL, 0);
	execl(arguments[0], "sleeper", "again", NULL);
	return 1;
}
