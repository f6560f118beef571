/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Execution time watched by perf's task clock (row E7): tens of microseconds late, not a tick.
 *
 * It is a high-resolution timer that runs while the thread runs, and its overflow is a signal to
 * the thread. A thread that may not watch the kernel (kernel.perf_event_paranoid) has one that
 * stays silent if the limit is passed there, until it fires again a period later: good while the
 * thread computes, so the caller has the CPU-time timer beside it.
 */
#include "within.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/*
 * The shortest period that perf's clock keeps, and by how much sooner it is set: from its overflow
 * to the signal's handler it takes more on most machines. One that comes early is set again.
 */
#define SHORTEST_NS 10000

/* Asked once in a process: what one thread may not have, the others may not. */
static bool kernel_forbidden, forbidden;

static int open_event(bool in_kernel)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_TASK_CLOCK,
		.size = sizeof(attr),
		.sample_period = INT64_MAX,
		.disabled = 1,
		.exclude_kernel = !in_kernel,
		.wakeup_events = 1,
	};

	return (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

/* The descriptor, or -1; what is forbidden is noted in `known`. */
static int try_event(bool in_kernel, bool *known)
{
	int fd;

	if (__atomic_load_n(known, __ATOMIC_RELAXED))
		return -1;
	fd = open_event(in_kernel);
	if (fd < 0 && (errno == EACCES || errno == EPERM || errno == ENOSYS))
		__atomic_store_n(known, true, __ATOMIC_RELAXED);
	return fd;
}

bool onbeat_perf_clock_open_(struct onbeat_perf_clock *clock)
{
	struct f_owner_ex owner = { F_OWNER_TID, (pid_t)syscall(SYS_gettid) };

	clock->fd = try_event(true, &kernel_forbidden);
	clock->in_kernel = clock->fd >= 0;
	if (!clock->in_kernel)
		clock->fd = try_event(false, &forbidden);
	if (clock->fd < 0)
		return false;
	if (fcntl(clock->fd, F_SETOWN_EX, &owner) || fcntl(clock->fd, F_SETSIG, ONBEAT_SIGNAL) ||
	    fcntl(clock->fd, F_SETFL, O_ASYNC | O_NONBLOCK) ||
	    ioctl(clock->fd, PERF_EVENT_IOC_ID, &clock->id)) {
		close(clock->fd);
		return false;
	}
	return true;
}

bool onbeat_perf_clock_set_(const struct onbeat_perf_clock *clock, int64_t expires_ns)
{
	uint64_t period_ns = SHORTEST_NS;
	int64_t left_ns;

	if (ioctl(clock->fd, PERF_EVENT_IOC_DISABLE, 0))
		return false;
	if (expires_ns == INT64_MAX)
		return true;
	left_ns = expires_ns - onbeat_cpu_now_() - SHORTEST_NS;
	if (left_ns > SHORTEST_NS)
		period_ns = (uint64_t)left_ns;
	return ioctl(clock->fd, PERF_EVENT_IOC_PERIOD, &period_ns) == 0 &&
	       ioctl(clock->fd, PERF_EVENT_IOC_REFRESH, 1) == 0;
}

void onbeat_perf_clock_close_(const struct onbeat_perf_clock *clock)
{
	uint64_t id;

	if (ioctl(clock->fd, PERF_EVENT_IOC_ID, &id) == 0 && id == clock->id)
		close(clock->fd);
}
