/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A user who may not have perf's clock in the kernel has it while his program computes, and the
 * CPU-time timer beside it: a limit is noticed in both.
 */
#include <onbeat/within.h>

#include <errno.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

#define NOBODY 65534

static int may_have_clock(int exclude_kernel)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_TASK_CLOCK,
		.size = sizeof(attr),
		.exclude_kernel = exclude_kernel & 1,
	};
	int fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

static void compute(void)
{
	compute_for_ever();
}

static void call_the_kernel(void)
{
	int64_t end_ns = now_ns() + ONBEAT_S(60);

	while (now_ns() < end_ns) {
		for (int i = 0; i < 1000; i++)
			syscall(SYS_getppid);
	}
}

static void expect_violation(void (*body)(void))
{
	volatile int violated = 0;

	onbeat_try_within_wcet (ONBEAT_MS(3)) {
		body();
		violated = 100;
	}
	onbeat_handle
		onbeat_when (onbeat_wcet_violation) {
			violated++;
		}
	onbeat_end;
	check(violated == 1);
}

static void as_ordinary_user(void)
{
	enum onbeat_wcet_source expected = ONBEAT_WCET_CPU_TIMER;

	if (may_have_clock(0))
		expected = ONBEAT_WCET_PERF_CLOCK;
	else if (may_have_clock(1))
		expected = ONBEAT_WCET_USER_CLOCK;
	check(onbeat_wcet_source() == expected);
	for (int i = 0; i < 10; i++) {
		expect_violation(compute);
		expect_violation(call_the_kernel);
	}
}

int main(void)
{
	const char *form = getenv("ONBEAT_FORM");
	pid_t child;
	int status;

	if (form && strcmp(form, "posix") == 0) {
		puts("the portable form has no perf");
		return SKIPPED;
	}
	child = fork();
	check(child >= 0);
	if (child == 0) {
		check(geteuid() != 0 || setuid(NOBODY) == 0);
		as_ordinary_user();
		exit(0);
	}
	check(waitpid(child, &status, 0) == child && status == 0);
	return 0;
}
