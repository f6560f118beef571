/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Threads of other processes under a reservation, and the guard that puts them back if this process
 * cannot.
 */
#ifndef ONBEAT_SRC_GUARD_H
#define ONBEAT_SRC_GUARD_H

#include <stdint.h>
#include <sys/types.h>

#include "scheduler.h"

/*
 * A thread, with what it had before it was attached. Numbers are used again, start times are not.
 */
struct onbeat_guarded {
	pid_t tid;
	uint64_t started; /* the 22nd figure of /proc/TID/stat; 0: there is no such thread */
	struct onbeat_attributes before;
};

/* When the thread started. */
uint64_t onbeat_started_(pid_t tid);

/* Gives the thread what it had, if it is there and still under SCHED_DEADLINE; 0, or -errno. */
int onbeat_put_back_(const struct onbeat_guarded *guarded, uint64_t period_ns);

/* From now on, a guard puts the thread back should this process end or exec. 0, or -errno. */
int onbeat_guard_(const struct onbeat_guarded *guarded);
/* From now on it does not. */
void onbeat_unguard_(const struct onbeat_guarded *guarded);

#endif
