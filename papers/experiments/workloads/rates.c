/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A periodic program that changes its rate once, and writes for each job when it was released, due
 * and done. Times are CLOCK_MONOTONIC's.
 *
 * usage: rates LOG until|for CHANGE_MS SECONDS PERIOD_US:WORK_US[:BUDGET_US] twice
 *
 * It sleeps until absolute times, or for the time that is left. With budgets it reserves them for
 * itself; the second one from the change on.
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { NS_PER_US = 1000, NS_PER_MS = 1000000, NS_PER_S = 1000000000, DEADLINE = 6 };

struct rate {
	long long period_ns, work_ns, budget_ns;
};

struct job {
	int64_t release_ns, deadline_ns, finished_ns;
};

/* struct sched_attr of include/uapi/linux/sched/types.h, version 0. */
struct attributes {
	uint32_t size;
	uint32_t policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime_ns;
	uint64_t deadline_ns;
	uint64_t period_ns;
};

static int64_t now_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static void sleep_until(int64_t ns, int is_absolute)
{
	int64_t left_ns = ns - now_ns(CLOCK_MONOTONIC), asked_ns = is_absolute ? ns : left_ns;
	struct timespec asked = { asked_ns / NS_PER_S, asked_ns % NS_PER_S };

	if (left_ns > 0)
		clock_nanosleep(CLOCK_MONOTONIC, is_absolute ? TIMER_ABSTIME : 0, &asked, NULL);
}

static void compute(int64_t work_ns)
{
	int64_t until_ns = now_ns(CLOCK_THREAD_CPUTIME_ID) + work_ns;

	while (now_ns(CLOCK_THREAD_CPUTIME_ID) < until_ns)
		;
}

static int reserve(const struct rate *rate)
{
	struct attributes deadline = {
		.size = sizeof(deadline),
		.policy = DEADLINE,
		.runtime_ns = rate->budget_ns,
		.deadline_ns = rate->period_ns,
		.period_ns = rate->period_ns,
	};

	if (!rate->budget_ns || !syscall(SYS_sched_setattr, 0, &deadline, 0))
		return 1;
	perror("rates: sched_setattr");
	return 0;
}

static int take(const char *argument, struct rate *rate)
{
	int taken = sscanf(argument, "%lld:%lld:%lld", &rate->period_ns, &rate->work_ns,
			   &rate->budget_ns);

	rate->period_ns *= NS_PER_US;
	rate->work_ns *= NS_PER_US;
	rate->budget_ns *= NS_PER_US;
	return taken >= 2 && rate->period_ns >= 100 * NS_PER_US;
}

static int write_log(const char *path, const struct job *jobs, size_t count)
{
	FILE *log = fopen(path, "w");

	if (!log) {
		perror(path);
		return 1;
	}
	fprintf(log, "release_ns,deadline_ns,finished_ns\n");
	for (size_t n = 0; n < count; n++)
		fprintf(log, "%lld,%lld,%lld\n", (long long)jobs[n].release_ns,
			(long long)jobs[n].deadline_ns, (long long)jobs[n].finished_ns);
	if (fclose(log)) {
		perror(path);
		return 1;
	}
	return 0;
}

int main(int argc, char **argv)
{
	static struct job jobs[100000];
	struct rate rates[2] = { 0 };
	const struct rate *rate = &rates[0];
	int64_t began_ns, change_ns, release_ns;
	size_t count = 0;

	if (argc != 7 || !take(argv[5], &rates[0]) || !take(argv[6], &rates[1])) {
		fprintf(stderr, "usage: rates LOG until|for CHANGE_MS SECONDS "
				"PERIOD_US:WORK_US[:BUDGET_US] twice\n");
		return 2;
	}
	if (!reserve(rate))
		return 1;
	began_ns = now_ns(CLOCK_MONOTONIC);
	change_ns = began_ns + strtoll(argv[3], NULL, 10) * NS_PER_MS;
	release_ns = began_ns + rate->period_ns;
	while (count < sizeof(jobs) / sizeof(jobs[0]) &&
	       release_ns < began_ns + strtoll(argv[4], NULL, 10) * NS_PER_S) {
		struct job *job = &jobs[count++];

		if (rate == &rates[0] && release_ns >= change_ns) {
			rate = &rates[1];
			if (!reserve(rate))
				return 1;
		}
		sleep_until(release_ns, !strcmp(argv[2], "until"));
		compute(rate->work_ns);
		job->release_ns = release_ns;
		job->deadline_ns = release_ns + rate->period_ns;
		job->finished_ns = now_ns(CLOCK_MONOTONIC);
		release_ns = job->deadline_ns;
	}
	return write_log(argv[1], jobs, count);
}
