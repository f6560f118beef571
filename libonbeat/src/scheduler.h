/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The callers that may change the scheduling of a thread.
 *
 * The kernel, directly; both calls are made in the guard, too, and so must be async-signal-safe.
 * For processes without the privilege it is onbeat's service, which also puts back what it gave,
 * and so has calls of its own (service.h).
 */
#ifndef ONBEAT_SRC_SCHEDULER_H
#define ONBEAT_SRC_SCHEDULER_H

#include <stdint.h>
#include <sys/types.h>

#define ONBEAT_POLICY_DEADLINE 6
#define ONBEAT_RESET_ON_FORK 0x01
#define ONBEAT_RECLAIM 0x02

/* As sched_setattr(2) writes it; glibc has no struct for it before 2.41. */
struct onbeat_attributes {
	uint32_t size;
	uint32_t policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime_ns;
	uint64_t deadline_ns;
	uint64_t period_ns;
};

/* Each gives 0, or -errno. */
struct onbeat_scheduler {
	int (*get)(pid_t tid, struct onbeat_attributes *attributes);
	int (*set)(pid_t tid, const struct onbeat_attributes *attributes);
};

extern const struct onbeat_scheduler *onbeat_scheduler_;

#endif
