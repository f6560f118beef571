/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Prints samples, as `LIMIT_NS NS` lines: how late a violation is notified, which the experiment
 * notification-latency draws the paper's Fig. 3 to 6 from, or what a block costs that ends at once.
 */
#include <onbeat/within.h>

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define SCHED_DEADLINE_POLICY 6
#define RESET_ON_FORK 1
#define BATCH 1000

enum kind { DEADLINE, WCET, WCET_BY_TIMER, BLOCK, NESTED, KINDS };

static const char *const names[KINDS] = { "deadline", "wcet", "wcet-by-timer", "block", "nested" };

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return ONBEAT_S(now.tv_sec) + ONBEAT_NS(now.tv_nsec);
}

/*
 * "other", "fifo" (priority 50) or "deadline"; 0 or -errno. The reservation holds the longest block
 * that is measured, 100 ms, with its pause: its throttling is not what is measured.
 */
static int set_policy(const char *policy)
{
	struct {
		uint32_t size, policy;
		uint64_t flags;
		int32_t nice;
		uint32_t priority;
		uint64_t runtime_ns, deadline_ns, period_ns;
	} attributes = { .size = sizeof(attributes) };

	if (strcmp(policy, "fifo") == 0) {
		attributes.policy = SCHED_FIFO;
		attributes.priority = 50;
	} else if (strcmp(policy, "deadline") == 0) {
		attributes.policy = SCHED_DEADLINE_POLICY;
		attributes.flags = RESET_ON_FORK;
		attributes.runtime_ns = 110000000;
		attributes.deadline_ns = attributes.period_ns = 200000000;
	} else if (strcmp(policy, "other") != 0) {
		return -EINVAL;
	}
	return syscall(SYS_sched_setattr, 0, &attributes, 0) ? -errno : 0;
}

/*
 * Makes the library choose this thread's source of execution-time signals; 0, or -1 if `kind`
 * cannot be had. Perf's clock is a descriptor: without one to spare, the library takes the CPU-time
 * timer.
 */
static int choose_source(enum kind kind)
{
	struct rlimit before, none;
	enum onbeat_wcet_source source;

	getrlimit(RLIMIT_NOFILE, &before);
	none = before;
	none.rlim_cur = 0;
	if (kind == WCET_BY_TIMER)
		setrlimit(RLIMIT_NOFILE, &none);
	source = onbeat_wcet_source();
	setrlimit(RLIMIT_NOFILE, &before);
	return (source != ONBEAT_WCET_CPU_TIMER) == (kind == WCET) ? 0 : -1;
}

/* A block that never ends, and how late its violation was notified. */
#define NOTIFIED(constrained)                                                \
	constrained (limit_ns) {                                             \
		for (;;)                                                     \
			;                                                    \
	}                                                                    \
	onbeat_handle                                                        \
		onbeat_when (onbeat_timing_constraint_violation) {           \
			ns = onbeat_delay();                                 \
		}                                                            \
	onbeat_end

static int64_t sample_ns(enum kind kind, int64_t limit_ns)
{
	volatile int64_t ns = -1;

	switch (kind) {
	case DEADLINE:
		NOTIFIED(onbeat_try_within_rel);
		break;
	case WCET:
	case WCET_BY_TIMER:
		NOTIFIED(onbeat_try_within_wcet);
		break;
	case NESTED:
		onbeat_try_within_rel (ONBEAT_S(100)) {
			ns = sample_ns(BLOCK, 0);
		}
		onbeat_handle
		onbeat_end;
		break;
	default:
		/* The mean of many blocks that end at once. */
		ns = -now_ns();
		for (volatile int i = 0; i < BATCH; i++) {
			onbeat_try_within_rel (ONBEAT_S(1000)) {
			}
			onbeat_handle
			onbeat_end;
		}
		ns = (ns + now_ns()) / BATCH;
	}
	return ns;
}

/*
 * Between two samples: so that neither real-time throttling nor a reservation's budget is what is
 * measured. As long as the block was, so that half of a CPU is enough, and 2 ms more.
 */
static void pause_after(int64_t limit_ns)
{
	const int64_t ns = limit_ns + ONBEAT_MS(2);

	nanosleep(&(struct timespec){ ns / ONBEAT_S(1), ns % ONBEAT_S(1) }, NULL);
}

int main(int count, char **arguments)
{
	int kind = 0, error;
	int64_t end_ns;

	while (kind < KINDS && count > 1 && strcmp(arguments[1], names[kind]) != 0)
		kind++;
	if (count < 5 || kind == KINDS || atof(arguments[3]) <= 0) {
		fprintf(stderr,
			"usage: %s deadline|wcet|wcet-by-timer|block|nested other|fifo|deadline SECONDS LIMIT_US...\n"
			"Goes through the limits again and again until the time is over.\n",
			arguments[0]);
		return 2;
	}
	/* First: a thread under SCHED_DEADLINE cannot start the portable form's router. */
	if ((kind == WCET || kind == WCET_BY_TIMER) && choose_source((enum kind)kind)) {
		fprintf(stderr, "%s cannot be had here: perf_event_paranoid may forbid it\n", arguments[1]);
		return 1;
	}
	sample_ns(DEADLINE, ONBEAT_US(100));
	error = set_policy(arguments[2]);
	if (error) {
		fprintf(stderr, "policy %s: %s\n", arguments[2], strerror(-error));
		return 1;
	}
	end_ns = now_ns() + (int64_t)(atof(arguments[3]) * 1e9);
	for (volatile int i = 4; now_ns() < end_ns; i = i + 1 < count ? i + 1 : 4) {
		int64_t limit_ns = ONBEAT_US(atoll(arguments[i]));

		printf("%lld %lld\n", (long long)limit_ns, (long long)sample_ns((enum kind)kind, limit_ns));
		pause_after(limit_ns);
	}
	return 0;
}
