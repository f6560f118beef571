/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A signal's handler may fork, or jump out of a block, while its own thread speaks to the guard or
 * forks; and any thread may fork while another one does.
 *
 * The signal comes where the lock is held for certain: this program's send() is what the library
 * calls, and the handler for forks that was registered first runs last.
 */
#include <onbeat/reserve.h>
#include <onbeat/within.h>

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../src/reservation.h"
#include "check.h"

#define TIMES 20
#define FORKS 200
#define NO_THREAD 0x10000000

static const struct onbeat_guarded nobody = { .tid = NO_THREAD, .started = 1 };
static pid_t process;
static volatile bool raises, raises_in_fork, is_late;
static volatile int forked;

/* The guard, which is a bare clone, is not this process. */
ssize_t send(int socket, const void *buffer, size_t length, int flags)
{
	if (raises && getpid() == process)
		raise(SIGUSR1);
	if (is_late && getpid() == process)
		compute_ns(ONBEAT_MS(20));
	return syscall(SYS_sendto, socket, buffer, length, flags, NULL, 0);
}

static void before_fork(void)
{
	if (raises_in_fork) {
		raises_in_fork = false;
		raise(SIGUSR1);
	}
}

static void wait_for(pid_t child)
{
	int status;

	check(waitpid(child, &status, 0) == child);
	check(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void speak(void)
{
	check(onbeat_guard_(&nobody) == 0);
	onbeat_unguard_(&nobody);
}

/* The child can have a guard of its own. One that waits for ever is ended. */
static void fork_and_speak(void)
{
	pid_t child = fork();

	check(child >= 0);
	if (child == 0) {
		alarm(60);
		speak();
		_exit(0);
	}
	wait_for(child);
}

static void fork_in_handler(int number)
{
	(void)number;
	fork_and_speak();
	forked++;
}

static void check_blocked(const sigset_t *blocked)
{
	sigset_t now;

	check(pthread_sigmask(SIG_SETMASK, NULL, &now) == 0);
	for (int number = 1; number < NSIG; number++)
		check(sigismember(&now, number) == sigismember(blocked, number));
}

static _Atomic bool over;
static _Atomic int spoken;

static void *speak_all_the_time(void *unused)
{
	while (!over) {
		speak();
		spoken++;
	}
	return unused;
}

/*
 * The other thread hardly does anything else, so that most forks meet it in the middle of a word.
 */
static void fork_while_another_speaks(void)
{
	pthread_t speaker;

	check(pthread_create(&speaker, NULL, speak_all_the_time, NULL) == 0);
	for (int n = 0; n < FORKS; n++) {
		int before = spoken;

		while (spoken == before)
			usleep(10);
		fork_and_speak();
	}
	over = true;
	check(pthread_join(speaker, NULL) == 0);
}

int main(void)
{
	struct sigaction action = { .sa_handler = fork_in_handler };
	volatile int violations = 0;
	sigset_t blocked;
	pid_t child;

	alarm(120);
	process = getpid();
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGUSR2);
	check(pthread_sigmask(SIG_SETMASK, &blocked, NULL) == 0);
	check(sigaction(SIGUSR1, &action, NULL) == 0);
	check(pthread_atfork(before_fork, NULL, NULL) == 0);
	speak();
	check_blocked(&blocked);

	raises = true;
	for (int n = 0; n < TIMES; n++) {
		speak();
		check(forked == 2 * (n + 1));
	}
	raises = false;
	check_blocked(&blocked);

	raises_in_fork = true;
	child = fork();
	check(child >= 0);
	check_blocked(&blocked);
	if (child == 0)
		_exit(0);
	wait_for(child);
	check(forked == 2 * TIMES + 1);

	/* A block that is violated meanwhile is left once the guard has answered. */
	is_late = true;
	for (int n = 0; n < TIMES; n++) {
		onbeat_try_within_rel (ONBEAT_MS(2)) {
			if (n % 2)
				onbeat_guard_(&nobody);
			else
				onbeat_unguard_(&nobody);
			compute_for_ever();
		}
		onbeat_handle
			onbeat_when (onbeat_deadline_violation) {
				violations++;
			}
		onbeat_end;
		check(pthread_sigmask(SIG_SETMASK, NULL, &blocked) == 0);
		check(!sigismember(&blocked, SIGUSR1) && sigismember(&blocked, SIGUSR2));
	}
	is_late = false;
	check(violations == TIMES);
	fork_while_another_speaks();
	return 0;
}
