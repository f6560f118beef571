/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * -EPERM has two causes, which the reason tells apart: no privilege, and a thread that may not run
 * everywhere. And who has no descriptor left hears that it is the guard that lacks it.
 */
#include <onbeat/reserve.h>

#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

#define NOBODY 65534

static void expect(int error, int wanted, const char *cause, const char *remedy)
{
	if (error != wanted || !strstr(onbeat_reservation_reason(), cause) ||
	    !strstr(onbeat_reservation_reason(), remedy)) {
		fprintf(stderr, "%s: %s\n", strerror(-error), onbeat_reservation_reason());
		exit(1);
	}
}

static void unprivileged(struct onbeat_reservation *reservation)
{
	if (geteuid() == 0)
		check(setresgid(NOBODY, NOBODY, NOBODY) == 0 && setresuid(NOBODY, NOBODY, NOBODY) == 0);
	expect(onbeat_reservation_attach(reservation, 0), -EPERM, "needs CAP_SYS_NICE", "run as root");
	expect(onbeat_reservation_attach_process(reservation, 0), -EPERM, "needs CAP_SYS_NICE", "start onbeat's service");
}

/* In a container of its own, processes 1 and 2 are ordinary programs. */
static void of_the_machine(struct onbeat_reservation *reservation)
{
	char namespace[32] = "";

	if (readlink("/proc/self/ns/pid", namespace, sizeof(namespace) - 1) < 0 || strcmp(namespace, "pid:[4026531836]"))
		return;
	for (int process = 1; process <= 2; process++)
		expect(onbeat_reservation_attach_process(reservation, process), -EPERM, "is init or a thread of the kernel",
		       "every program");
}

static void pinned(struct onbeat_reservation *reservation)
{
	cpu_set_t allowed;

	CPU_ZERO(&allowed);
	CPU_SET(0, &allowed);
	if (geteuid() != 0 || sysconf(_SC_NPROCESSORS_ONLN) < 2 || sched_setaffinity(0, sizeof(allowed), &allowed))
		return;
	expect(onbeat_reservation_attach(reservation, 0), -EPERM, "may not run on every CPU", "sched_setaffinity");
}

/*
 * Two descriptors are left: one to read the threads of the process, and one where the guard needs
 * three.
 */
static void without_descriptors(struct onbeat_reservation *reservation)
{
	int next = dup(STDERR_FILENO);
	struct rlimit before, few;

	check(next >= 0 && close(next) == 0 && getrlimit(RLIMIT_NOFILE, &before) == 0);
	few = before;
	few.rlim_cur = (rlim_t)next + 2;
	check(setrlimit(RLIMIT_NOFILE, &few) == 0);
	expect(onbeat_reservation_attach_process(reservation, getppid()), -EMFILE, "the guard", "RLIMIT_NOFILE");
	check(setrlimit(RLIMIT_NOFILE, &before) == 0);
}

int main(void)
{
	void (*const refused[])(struct onbeat_reservation *) = { unprivileged, of_the_machine, pinned, without_descriptors };
	struct onbeat_reservation *reservation;
	int status;

	/* Nor is there a service that could be asked. */
	check(setenv("DBUS_SYSTEM_BUS_ADDRESS", "unix:path=/nonexistent", 1) == 0);
	check(onbeat_reservation_create(&reservation, 2000000, 100000000, 100000000) == 0);
	for (int i = 0; i < 4; i++) {
		pid_t child = fork();

		check(child >= 0);
		if (child == 0) {
			refused[i](reservation);
			exit(0);
		}
		check(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
	}
	onbeat_reservation_destroy(reservation);
	return 0;
}
