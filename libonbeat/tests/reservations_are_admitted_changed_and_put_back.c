/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Rows A1 and A2: create, attach, change, query, consumed time, refusal with what is free, put
 * back.
 */
#include <onbeat/reserve.h>

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "check.h"

#define MS INT64_C(1000000)

#define MOST_CPUS 4096

static volatile int stop;
static volatile pid_t others[MOST_CPUS];

static void *wait_attached(void *argument)
{
	volatile pid_t *own = argument;

	*own = (pid_t)syscall(SYS_gettid);
	while (!stop)
		usleep(1000);
	return NULL;
}

static void expect_refusal(int error, int wanted, const char *words)
{
	if (error != wanted || !strstr(onbeat_reservation_reason(), words)) {
		fprintf(stderr, "wanted %s with '%s', got %s: %s\n", strerror(-wanted), words,
			strerror(-error), onbeat_reservation_reason());
		exit(1);
	}
}

int main(void)
{
	struct onbeat_reservation *reservation = NULL;
	struct onbeat_reservation *greedy = NULL;
	struct onbeat_reservation_state state;
	static pthread_t threads[MOST_CPUS];
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	int available;
	int error;

	expect_refusal(onbeat_reservation_create(&reservation, 5 * MS, 4 * MS, 10 * MS), -EINVAL,
		       "does not hold");
	expect_refusal(onbeat_reservation_create(&reservation, 0, 4 * MS, 10 * MS), -EINVAL, "0 < runtime");
	check(onbeat_reservation_create(&reservation, 2 * MS, 100 * MS, 100 * MS) == 0);
	expect_refusal(onbeat_reservation_attach(reservation, 1), -ESRCH, "there is no thread 1");
	expect_refusal(onbeat_reservation_detach(reservation, 0), -ENOENT, "not attached");

	error = onbeat_reservation_attach(reservation, 0);
	if (error == -EPERM && !getenv("CI")) {
		puts(onbeat_reservation_reason());
		return SKIPPED;
	}
	check(error == 0);
	check(sched_getscheduler(0) == (6 | SCHED_RESET_ON_FORK));
	expect_refusal(onbeat_reservation_attach(reservation, 0), -EALREADY, "attached already");

	/* One thread more than there are CPUs: all of them at 99% never fit. */
	check(cpus > 0 && cpus <= MOST_CPUS);
	for (long i = 0; i < cpus; i++) {
		check(pthread_create(&threads[i], NULL, wait_attached, (void *)&others[i]) == 0);
		while (!others[i])
			usleep(1000);
		check(onbeat_reservation_attach(reservation, others[i]) == 0);
	}
	check(onbeat_reservation_query(reservation, &state) == 0);
	check(state.threads == cpus + 1 && state.runtime_ns == 2 * MS);

	check(onbeat_reservation_change(reservation, 3 * MS, 50 * MS, 50 * MS) == 0);
	check(onbeat_reservation_query(reservation, &state) == 0);
	check(state.runtime_ns == 3 * MS && state.period_ns == 50 * MS);

	check(onbeat_reservation_available(&available) == 0);
	check(available > 0 && available < 1000 * cpus);
	error = onbeat_reservation_change(reservation, 99 * MS, 100 * MS, 100 * MS);
	expect_refusal(error, -EBUSY, "are free");
	check(onbeat_reservation_query(reservation, &state) == 0);
	check(state.runtime_ns == 3 * MS);
	expect_refusal(onbeat_reservation_change(reservation, 10, 100 * MS, 100 * MS), -EINVAL, "1024 ns");

	for (volatile long i = 0; i < 3000000; i++)
		;
	check(onbeat_reservation_query(reservation, &state) == 0);
	check(state.consumed_ns > 0);

	check(onbeat_reservation_detach(reservation, 0) == 0);
	check(sched_getscheduler(0) == SCHED_OTHER);
	check(onbeat_reservation_create(&greedy, 4 * MS, 10 * MS, 10 * MS) == 0);
	onbeat_reservation_destroy(greedy);
	onbeat_reservation_destroy(reservation);
	for (long i = 0; i < cpus; i++)
		check(sched_getscheduler(others[i]) == SCHED_OTHER);
	stop = 1;
	for (long i = 0; i < cpus; i++)
		pthread_join(threads[i], NULL);
	onbeat_reservation_destroy(NULL);
	return 0;
}
