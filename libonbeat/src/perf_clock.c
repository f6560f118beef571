/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Execution time watched by perf's task clock (row E7): tens of microseconds late, not a tick.
 *
 * It is a high-resolution timer that runs while the thread runs, and its overflow is a signal to the
 * thread. An event that may not count in the kernel would be no use: it stays silent if the limit is
 * passed there. So either the kernel gives the whole event, or the caller takes the CPU-time timer.
 */
#include "within.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The shortest period that perf's clock keeps. */
#define SHORTEST_NS 10000

/* Asked once in a process: what one thread may not have, the others may not. */
static bool forbidden;

static int open_event(void)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_TASK_CLOCK,
		.size = sizeof(attr),
		.sample_period = INT64_MAX,
		.disabled = 1,
		.wakeup_events = 1,
	};

	return (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

/* The descriptor of this thread's clock, or -1 if it cannot have one. */
int onbeat_perf_clock_open_(void)
{
	struct f_owner_ex owner = { F_OWNER_TID, (pid_t)syscall(SYS_gettid) };
	int fd;

	if (__atomic_load_n(&forbidden, __ATOMIC_RELAXED))
		return -1;
	fd = open_event();
	if (fd < 0) {
		if (errno == EACCES || errno == EPERM || errno == ENOSYS)
			__atomic_store_n(&forbidden, true, __ATOMIC_RELAXED);
		return -1;
	}
	if (fcntl(fd, F_SETOWN_EX, &owner) || fcntl(fd, F_SETSIG, ONBEAT_SIGNAL) ||
	    fcntl(fd, F_SETFL, O_ASYNC | O_NONBLOCK)) {
		close(fd);
		return -1;
	}
	return fd;
}

/* Lets the clock signal once when this thread's CPU time reaches `expires_ns`; INT64_MAX stops it. */
void onbeat_perf_clock_set_(int fd, int64_t expires_ns)
{
	uint64_t period_ns = SHORTEST_NS;
	int64_t left_ns;

	ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
	if (expires_ns == INT64_MAX)
		return;
	left_ns = expires_ns - onbeat_cpu_now_();
	if (left_ns > SHORTEST_NS)
		period_ns = (uint64_t)left_ns;
	ioctl(fd, PERF_EVENT_IOC_PERIOD, &period_ns);
	ioctl(fd, PERF_EVENT_IOC_REFRESH, 1);
}
