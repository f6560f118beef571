/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The kernel as the one who changes the scheduling of a thread. */
#include "scheduler.h"

#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

static int get(pid_t tid, struct onbeat_attributes *attributes)
{
	return syscall(SYS_sched_getattr, tid, attributes, sizeof(*attributes), 0) ? -errno : 0;
}

static int set(pid_t tid, const struct onbeat_attributes *attributes)
{
	return syscall(SYS_sched_setattr, tid, attributes, 0) ? -errno : 0;
}

static const struct onbeat_scheduler direct = { get, set };

const struct onbeat_scheduler *onbeat_scheduler_ = &direct;
