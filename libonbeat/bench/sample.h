/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Samples of the notification latency, under a policy, from one source of signals: for the programs
 * here.
 */
#ifndef ONBEAT_BENCH_SAMPLE_H
#define ONBEAT_BENCH_SAMPLE_H

#include <onbeat/within.h>

#include <errno.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define SCHED_DEADLINE_POLICY 6
#define RESET_ON_FORK 1

enum kind { DEADLINE, WCET, WCET_BY_TIMER };

static inline int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return ONBEAT_S(now.tv_sec) + ONBEAT_NS(now.tv_nsec);
}

/*
 * "other", "fifo" (priority 50) or "deadline"; 0 or -errno. The reservation holds the longest block
 * that is measured, 100 ms, with its pause: its throttling is not what is measured.
 */
static inline int set_policy(const char *policy)
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
static inline int choose_source(enum kind kind)
{
	struct rlimit before, none;
	enum onbeat_wcet_source source;

	if (kind == DEADLINE)
		return 0;
	getrlimit(RLIMIT_NOFILE, &before);
	none = before;
	none.rlim_cur = 0;
	if (kind == WCET_BY_TIMER)
		setrlimit(RLIMIT_NOFILE, &none);
	source = onbeat_wcet_source();
	setrlimit(RLIMIT_NOFILE, &before);
	return (source != ONBEAT_WCET_CPU_TIMER) == (kind == WCET) ? 0 : -1;
}

/* How late one violation of a block that never ends was notified. */
static inline int64_t sample_ns(enum kind kind, int64_t limit_ns)
{
	volatile int64_t delay_ns = -1;

	if (kind == DEADLINE) {
		onbeat_try_within_rel (limit_ns) {
			for (;;)
				;
		}
		onbeat_handle
			onbeat_when (onbeat_deadline_violation) {
				delay_ns = onbeat_delay();
			}
		onbeat_end;
	} else {
		onbeat_try_within_wcet (limit_ns) {
			for (;;)
				;
		}
		onbeat_handle
			onbeat_when (onbeat_wcet_violation) {
				delay_ns = onbeat_delay();
			}
		onbeat_end;
	}
	return delay_ns;
}

/*
 * Between two samples: so that neither real-time throttling nor a reservation's budget is what is
 * measured. As long as the block was, so that half of a CPU is enough, and 2 ms more.
 */
static inline void pause_after(int64_t limit_ns)
{
	struct timespec length = { limit_ns / ONBEAT_S(1), limit_ns % ONBEAT_S(1) };

	length.tv_nsec += ONBEAT_MS(2);
	if (length.tv_nsec >= ONBEAT_S(1)) {
		length.tv_sec++;
		length.tv_nsec -= ONBEAT_S(1);
	}
	nanosleep(&length, NULL);
}

#endif
