/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * How late a violation is notified, and what a block costs: the figures of the paper's section 7, on
 * the machine at hand. Under each policy it may have; with pauses, so that real-time throttling is
 * not what is measured. Prints a table, and JSON with --json FILE.
 */
#include <onbeat/within.h>

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define ROUNDS 2000
#define BLOCKS 200000

static int64_t delays_ns[ROUNDS];
static FILE *json;
static const char *separator = "";

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static int ascending(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

static void row(const char *what, const char *policy, double p50, double p99, double max)
{
	printf("| %-34s | %-8s | %9.3f | %9.3f | %9.3f |\n", what, policy, p50, p99, max);
	if (json) {
		fprintf(json,
			"%s\n  {\"what\": \"%s\", \"policy\": \"%s\", \"p50_us\": %.3f, "
			"\"p99_us\": %.3f, \"max_us\": %.3f}",
			separator, what, policy, p50, p99, max);
		separator = ",";
	}
}

static void notification(const char *policy, int wcet)
{
	struct timespec pause = { 0, 2000000 };

	for (volatile int i = 0; i < ROUNDS; i++) {
		nanosleep(&pause, NULL);
		if (wcet) {
			onbeat_try_within_wcet (ONBEAT_US(500)) {
				for (;;)
					;
			}
			onbeat_handle onbeat_when (onbeat_wcet_violation)
			{
				delays_ns[i] = onbeat_delay();
			}
			onbeat_end;
		} else {
			onbeat_try_within_rel (ONBEAT_US(500)) {
				for (;;)
					;
			}
			onbeat_handle onbeat_when (onbeat_deadline_violation)
			{
				delays_ns[i] = onbeat_delay();
			}
			onbeat_end;
		}
	}
	qsort(delays_ns, ROUNDS, sizeof(delays_ns[0]), ascending);
	row(wcet ? "execution-time notification, us" : "deadline notification, us", policy,
	    (double)delays_ns[ROUNDS / 2] / 1e3, (double)delays_ns[ROUNDS * 99 / 100] / 1e3,
	    (double)delays_ns[ROUNDS - 1] / 1e3);
}

static int set_policy(const char *policy)
{
	struct {
		uint32_t size, policy;
		uint64_t flags;
		int32_t nice;
		uint32_t priority;
		uint64_t runtime, deadline, period;
	} attributes = { .size = sizeof(attributes) };

	if (strcmp(policy, "fifo") == 0) {
		attributes.policy = SCHED_FIFO;
		attributes.priority = 50;
	} else if (strcmp(policy, "deadline") == 0) {
		attributes.policy = 6;
		attributes.runtime = 5000000;
		attributes.deadline = attributes.period = 10000000;
	}
	return syscall(SYS_sched_setattr, 0, &attributes, 0) ? -errno : 0;
}

static void block_costs(void)
{
	int64_t begin_ns = now_ns();

	for (volatile int i = 0; i < BLOCKS; i++) {
		onbeat_try_within_rel (ONBEAT_S(10)) {
		}
		onbeat_handle onbeat_end;
	}
	row("enter and leave a block, us", "other", (double)(now_ns() - begin_ns) / BLOCKS / 1e3, 0,
	    0);
	onbeat_try_within_rel (ONBEAT_S(100)) {
		int64_t nested_ns = now_ns();

		for (volatile int i = 0; i < BLOCKS; i++) {
			onbeat_try_within_rel (ONBEAT_S(1000)) {
			}
			onbeat_handle onbeat_end;
		}
		row("the same, nested, not earliest, us", "other",
		    (double)(now_ns() - nested_ns) / BLOCKS / 1e3, 0, 0);
	}
	onbeat_handle onbeat_end;
}

int main(int count, char **arguments)
{
	static const char *const policies[] = { "other", "fifo", "deadline" };

	if (count == 3 && strcmp(arguments[1], "--json") == 0) {
		json = fopen(arguments[2], "w");
		if (!json) {
			fprintf(stderr, "%s: %s\n", arguments[2], strerror(errno));
			return 1;
		}
		fprintf(json, "[");
	} else if (count > 1) {
		fprintf(stderr, "usage: %s [--json FILE]\n", arguments[0]);
		return 2;
	}
	printf("| %-34s | %-8s | %9s | %9s | %9s |\n|---|---|---|---|---|\n", "what", "policy",
	       "p50", "p99", "max");
	block_costs();
	for (size_t i = 0; i < sizeof(policies) / sizeof(policies[0]); i++) {
		int error = set_policy(policies[i]);

		if (error) {
			fprintf(stderr, "%s: %s; left out\n", policies[i], strerror(-error));
			continue;
		}
		notification(policies[i], 0);
		notification(policies[i], 1);
	}
	printf("\nexecution time is watched by %s\n", onbeat_wcet_source() == ONBEAT_WCET_PERF_CLOCK
							      ? "perf's task clock"
							      : "the CPU-time timer");
	if (json) {
		fprintf(json, "\n]\n");
		if (fclose(json)) {
			fprintf(stderr, "%s: %s\n", arguments[2], strerror(errno));
			return 1;
		}
	}
	return 0;
}
