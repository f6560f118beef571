/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Rows A1: a whole process is attached, the own one or another; its threads get back what they had
 * when it is detached, when the reservation is destroyed, and when who attached it is killed.
 */
#include <onbeat/reserve.h>

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

#define MS INT64_C(1000000)
#define RESERVED (6 | SCHED_RESET_ON_FORK)

static volatile pid_t second;

static void *be_second(void *unused)
{
	second = (pid_t)syscall(SYS_gettid);
	for (;;)
		pause();
	return unused;
}

/*
 * A process of two threads that ends with its parent; the number of the second is written to `out`.
 */
static pid_t start_two_threads(pid_t *second_of_it)
{
	int pipes[2];
	pid_t child;

	check(pipe(pipes) == 0);
	child = fork();
	check(child >= 0);
	if (child == 0) {
		pthread_t thread;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		check(pthread_create(&thread, NULL, be_second, NULL) == 0);
		while (!second)
			usleep(1000);
		check(write(pipes[1], (void *)&second, sizeof(second)) == sizeof(second));
		for (;;)
			pause();
	}
	check(read(pipes[0], second_of_it, sizeof(*second_of_it)) == sizeof(*second_of_it));
	close(pipes[0]);
	close(pipes[1]);
	return child;
}

static struct onbeat_reservation *new_reservation(void)
{
	struct onbeat_reservation *reservation;

	check(onbeat_reservation_create(&reservation, 2 * MS, 100 * MS, 100 * MS) == 0);
	return reservation;
}

static void await_policy(pid_t tid, int policy)
{
	for (int i = 0; sched_getscheduler(tid) != policy; i++) {
		check(i < 30000);
		usleep(1000);
	}
}

/* In a process of its own, which waits to be killed once it has attached the other. */
static void attach_and_be_killed(pid_t process)
{
	struct onbeat_reservation *reservation = new_reservation();

	check(onbeat_reservation_attach_process(reservation, process) == 0);
	for (;;)
		pause();
}

int main(void)
{
	struct onbeat_reservation *reservation = new_reservation();
	struct onbeat_reservation_state state;
	pid_t other_second, killed;
	pid_t other = start_two_threads(&other_second);
	struct sched_param nothing = { 0 };
	pthread_t thread;
	int error = onbeat_reservation_attach_process(reservation, other);

	if (error == -EPERM && !getenv("CI")) {
		puts(onbeat_reservation_reason());
		return SKIPPED;
	}
	check(error == 0);
	check(sched_getscheduler(other) == RESERVED && sched_getscheduler(other_second) == RESERVED);
	check(onbeat_reservation_query(reservation, &state) == 0);
	check(state.threads == 2 && state.consumed_ns >= 0);
	check(onbeat_reservation_change(reservation, 3 * MS, 100 * MS, 100 * MS) == 0);

	/* The program's children are as if there were no guard. */
	check(waitpid(-1, NULL, WNOHANG) == 0);

	check(onbeat_reservation_detach_process(reservation, other) == 0);
	check(sched_getscheduler(other) == SCHED_OTHER && sched_getscheduler(other_second) == SCHED_OTHER);
	check(onbeat_reservation_detach_process(reservation, other) == -ENOENT);
	check(onbeat_reservation_attach_process(reservation, 0x7ffffff0) == -ESRCH);
	check(strstr(onbeat_reservation_reason(), "no process"));

	/* The own process: the thread that is attached by itself stays so. */
	check(onbeat_reservation_attach(reservation, 0) == 0);
	check(onbeat_reservation_attach_process(reservation, 0) == 0);
	check(onbeat_reservation_detach_process(reservation, 0) == -ENOENT);
	check(onbeat_reservation_detach(reservation, 0) == 0);
	check(onbeat_reservation_attach_process(reservation, 0) == 0);
	check(sched_getscheduler(0) == RESERVED);
	/* A thread that is new is ordinary until it is called again. */
	check(pthread_create(&thread, NULL, be_second, NULL) == 0);
	while (!second)
		usleep(1000);
	check(sched_getscheduler(second) == SCHED_OTHER);
	check(onbeat_reservation_attach_process(reservation, 0) == 0);
	check(sched_getscheduler(second) == RESERVED);
	check(onbeat_reservation_query(reservation, &state) == 0 && state.threads == 2);
	check(onbeat_reservation_attach_process(reservation, other) == 0);
	onbeat_reservation_destroy(reservation);
	check(sched_getscheduler(0) == SCHED_OTHER);
	check(sched_getscheduler(other) == SCHED_OTHER && sched_getscheduler(other_second) == SCHED_OTHER);

	killed = fork();
	check(killed >= 0);
	if (killed == 0)
		attach_and_be_killed(other);
	await_policy(other, RESERVED);
	await_policy(other_second, RESERVED);
	check(kill(killed, SIGKILL) == 0 && waitpid(killed, NULL, 0) == killed);
	await_policy(other, SCHED_OTHER);
	await_policy(other_second, SCHED_OTHER);

	/* Parameters that an administrator set meanwhile are left alone. */
	reservation = new_reservation();
	check(onbeat_reservation_attach_process(reservation, other) == 0);
	check(sched_setscheduler(other, SCHED_BATCH, &nothing) == 0);
	onbeat_reservation_destroy(reservation);
	check(sched_getscheduler(other) == SCHED_BATCH && sched_getscheduler(other_second) == SCHED_OTHER);

	check(kill(other, SIGKILL) == 0 && waitpid(other, NULL, 0) == other);
	return 0;
}
