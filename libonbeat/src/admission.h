/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A thread's scheduling as sched_setattr(2) writes it; glibc has no struct for it before 2.41. */
#ifndef ONBEAT_SRC_ADMISSION_H
#define ONBEAT_SRC_ADMISSION_H

#include <stdint.h>
#include <sys/types.h>

#define ONBEAT_POLICY_DEADLINE 6
#define ONBEAT_RESET_ON_FORK 0x01

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

int onbeat_attributes_get_(pid_t tid, struct onbeat_attributes *attributes);
int onbeat_attributes_set_(pid_t tid, const struct onbeat_attributes *attributes);

#endif
