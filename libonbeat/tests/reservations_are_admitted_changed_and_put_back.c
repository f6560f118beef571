/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Rows A1 and A2: threads and whole processes are attached, the own one or another; what is refused
 * is refused with why and what to do; threads get back what they had when they are detached, when
 * the reservation is destroyed, and when the process that attached them is killed.
 */
#include <onbeat/reserve.h>

#include <errno.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "check.h"

#define NOBODY 65534
#define MOST_CPUS 4096
#define RESERVED (6 | SCHED_RESET_ON_FORK)

static struct onbeat_reservation *reservation;

static void expect_refusal(int error, int wanted, const char *cause, const char *remedy)
{
	const char *reason = onbeat_reservation_reason();

	if (error == wanted && strstr(reason, cause) && strstr(reason, remedy))
		return;
	fprintf(stderr, "wanted %s with '%s' and '%s', got %s: %s\n", strerror(-wanted), cause, remedy, strerror(-error),
		reason);
	exit(1);
}

static void new_reservation(void)
{
	check(onbeat_reservation_create(&reservation, 2 * MS, 100 * MS, 100 * MS) == 0);
}

static void an_unprivileged_program_is_told_what_it_needs(void)
{
	int64_t remaining_ns;

	if (geteuid() == 0)
		check(setresgid(NOBODY, NOBODY, NOBODY) == 0 && setresuid(NOBODY, NOBODY, NOBODY) == 0);
	expect_refusal(onbeat_reservation_attach(reservation, 0), -EPERM, "needs CAP_SYS_NICE", "run as root");
	expect_refusal(onbeat_reservation_attach_process(reservation, 0), -EPERM, "CAP_SYS_NICE", "start onbeat's service");
	expect_refusal(onbeat_reservation_share(reservation), -EPERM, "", "systemctl start onbeat");
	expect_refusal(onbeat_reservation_remaining(reservation, &remaining_ns), -EINVAL, "not a shared one", "");
}

static void a_pinned_thread_is_told_apart(void)
{
	cpu_set_t allowed;

	CPU_ZERO(&allowed);
	CPU_SET(0, &allowed);
	if (geteuid() != 0 || sysconf(_SC_NPROCESSORS_ONLN) < 2 || sched_setaffinity(0, sizeof(allowed), &allowed))
		return;
	expect_refusal(onbeat_reservation_attach(reservation, 0), -EPERM, "may not run on every CPU", "sched_setaffinity");
}

/* In a container of its own, processes 1 and 2 are ordinary programs. */
static void init_and_the_kernels_threads_are_off_limits(void)
{
	char namespace[32] = "";

	if (readlink("/proc/self/ns/pid", namespace, sizeof(namespace) - 1) < 0 || strcmp(namespace, "pid:[4026531836]"))
		return;
	for (int process = 1; process <= 2; process++)
		expect_refusal(onbeat_reservation_attach_process(reservation, process), -EPERM,
			       "is init or a thread of the kernel", "every program");
}

/* Two are left: one to read the process's threads, and one where the guard needs three. */
static void the_guard_may_lack_descriptors(void)
{
	int next = dup(STDERR_FILENO);
	struct rlimit few;

	check(next >= 0 && close(next) == 0 && getrlimit(RLIMIT_NOFILE, &few) == 0);
	few.rlim_cur = (rlim_t)next + 2;
	check(setrlimit(RLIMIT_NOFILE, &few) == 0);
	expect_refusal(onbeat_reservation_attach_process(reservation, getppid()), -EMFILE, "the guard", "RLIMIT_NOFILE");
}

static volatile bool stop;
static volatile pid_t others[MOST_CPUS];

static void *wait_attached(void *argument)
{
	volatile pid_t *own = argument;

	*own = (pid_t)syscall(SYS_gettid);
	while (!stop)
		usleep(1000);
	return NULL;
}

static pthread_t start(volatile pid_t *tid)
{
	pthread_t thread;

	check(pthread_create(&thread, NULL, wait_attached, (void *)tid) == 0);
	while (!*tid)
		usleep(1000);
	return thread;
}

static void threads_are_admitted_changed_and_put_back(void)
{
	struct onbeat_reservation_state state;
	static pthread_t threads[MOST_CPUS];
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	int available;

	check(sched_getscheduler(0) == RESERVED);
	expect_refusal(onbeat_reservation_attach(reservation, 0), -EALREADY, "attached already", "");
	expect_refusal(onbeat_reservation_attach(reservation, 1), -ESRCH, "there is no thread 1", "");

	/* One thread more than there are CPUs: all of them at 99% never fit. */
	check(cpus > 0 && cpus <= MOST_CPUS);
	for (long i = 0; i < cpus; i++) {
		threads[i] = start(&others[i]);
		check(onbeat_reservation_attach(reservation, others[i]) == 0);
	}
	check(onbeat_reservation_query(reservation, &state) == 0);
	check(state.threads == cpus + 1 && state.runtime_ns == 2 * MS);
	check(onbeat_reservation_change(reservation, 3 * MS, 50 * MS, 50 * MS) == 0);
	check(onbeat_reservation_available(&available) == 0);
	check(available > 0 && available < 1000 * cpus);
	expect_refusal(onbeat_reservation_change(reservation, 99 * MS, 100 * MS, 100 * MS), -EBUSY, "are free", "ask for less");
	expect_refusal(onbeat_reservation_change(reservation, 10, 100 * MS, 100 * MS), -EINVAL, "1024 ns", "");
	expect_refusal(onbeat_reservation_change(reservation, 5, 4, 10), -EINVAL, "does not hold", "");

	for (volatile long i = 0; i < 3000000; i++)
		;
	check(onbeat_reservation_query(reservation, &state) == 0 && state.consumed_ns > 0);
	check(state.runtime_ns == 3 * MS && state.period_ns == 50 * MS);
	check(onbeat_reservation_detach(reservation, 0) == 0);
	expect_refusal(onbeat_reservation_detach(reservation, 0), -ENOENT, "not attached", "");
	check(sched_getscheduler(0) == SCHED_OTHER);
	onbeat_reservation_destroy(reservation);
	for (long i = 0; i < cpus; i++)
		check(sched_getscheduler(others[i]) == SCHED_OTHER);
	stop = true;
	for (long i = 0; i < cpus; i++)
		pthread_join(threads[i], NULL);
	stop = false;
}

/* Another process of two threads, which ends with this one. */
static pid_t other, other_second;

static void start_other(void)
{
	int pipes[2];

	check(pipe(pipes) == 0);
	other = fork();
	check(other >= 0);
	if (other == 0) {
		pid_t second = 0;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		start(&second);
		check(write(pipes[1], &second, sizeof(second)) == sizeof(second));
		for (;;)
			pause();
	}
	check(read(pipes[0], &other_second, sizeof(other_second)) == sizeof(other_second));
}

static void check_other(int policy)
{
	check(sched_getscheduler(other) == policy && sched_getscheduler(other_second) == policy);
}

static void await_other(int policy)
{
	for (int i = 0; sched_getscheduler(other) != policy || sched_getscheduler(other_second) != policy; i++) {
		check(i < 30000);
		usleep(1000);
	}
}

static void processes_are_attached_whole(void)
{
	struct onbeat_reservation_state state;
	volatile pid_t second = 0;

	new_reservation();
	check(onbeat_reservation_attach_process(reservation, other) == 0);
	check_other(RESERVED);
	check(onbeat_reservation_query(reservation, &state) == 0 && state.threads == 2 && state.consumed_ns >= 0);
	check(onbeat_reservation_change(reservation, 3 * MS, 100 * MS, 100 * MS) == 0);
	/* The program's children are as if there were no guard. */
	check(waitpid(-1, NULL, WNOHANG) == 0);
	check(onbeat_reservation_detach_process(reservation, other) == 0);
	check_other(SCHED_OTHER);
	expect_refusal(onbeat_reservation_detach_process(reservation, other), -ENOENT, "not attached", "");
	expect_refusal(onbeat_reservation_attach_process(reservation, 0x7ffffff0), -ESRCH, "no process", "");

	/* The own process: the thread that is attached by itself stays so. */
	check(onbeat_reservation_attach(reservation, 0) == 0);
	check(onbeat_reservation_attach_process(reservation, 0) == 0);
	check(onbeat_reservation_detach_process(reservation, 0) == -ENOENT);
	check(onbeat_reservation_detach(reservation, 0) == 0);
	check(onbeat_reservation_attach_process(reservation, 0) == 0);
	check(sched_getscheduler(0) == RESERVED);
	/* A thread that is new is ordinary until it is called again. */
	start(&second);
	check(sched_getscheduler(second) == SCHED_OTHER);
	check(onbeat_reservation_attach_process(reservation, 0) == 0);
	check(sched_getscheduler(second) == RESERVED);
	check(onbeat_reservation_query(reservation, &state) == 0 && state.threads == 2);
	check(onbeat_reservation_attach_process(reservation, other) == 0);
	onbeat_reservation_destroy(reservation);
	check(sched_getscheduler(0) == SCHED_OTHER);
	check_other(SCHED_OTHER);
}

static void what_a_killed_process_attached_is_put_back(void)
{
	pid_t killed = fork();

	if (killed == 0) {
		new_reservation();
		check(onbeat_reservation_attach_process(reservation, other) == 0);
		for (;;)
			pause();
	}
	await_other(RESERVED);
	check(kill(killed, SIGKILL) == 0 && waitpid(killed, NULL, 0) == killed);
	await_other(SCHED_OTHER);
}

static void what_an_administrator_set_meanwhile_is_left_alone(void)
{
	struct sched_param nothing = { 0 };

	new_reservation();
	check(onbeat_reservation_attach_process(reservation, other) == 0);
	check(sched_setscheduler(other, SCHED_BATCH, &nothing) == 0);
	onbeat_reservation_destroy(reservation);
	check(sched_getscheduler(other) == SCHED_BATCH && sched_getscheduler(other_second) == SCHED_OTHER);
	onbeat_reservation_destroy(NULL);
}

int main(void)
{
	int error;

	/* Nor is there a service that could be asked. */
	check(setenv("DBUS_SYSTEM_BUS_ADDRESS", "unix:path=/nonexistent", 1) == 0);
	new_reservation();
	in_a_child(an_unprivileged_program_is_told_what_it_needs);
	in_a_child(a_pinned_thread_is_told_apart);
	in_a_child(init_and_the_kernels_threads_are_off_limits);
	in_a_child(the_guard_may_lack_descriptors);
	error = onbeat_reservation_attach(reservation, 0);
	if (error == -EPERM && !getenv("CI")) {
		puts(onbeat_reservation_reason());
		return SKIPPED;
	}
	check(error == 0);
	run_test(threads_are_admitted_changed_and_put_back);
	start_other();
	run_test(processes_are_attached_whole);
	run_test(what_a_killed_process_attached_is_put_back);
	run_test(what_an_administrator_set_meanwhile_is_left_alone);
	check(kill(other, SIGKILL) == 0 && waitpid(other, NULL, 0) == other);
	return 0;
}
