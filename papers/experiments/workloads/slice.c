/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Runs a program that asks the kernel's own scheduler (EEVDF) for a slice of its own; what it
 * starts has it, too.
 *
 * usage: slice NANOSECONDS PROGRAM [ARGUMENT...]
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

/* struct sched_attr of include/uapi/linux/sched/types.h, version 0. */
struct attributes {
	uint32_t size;
	uint32_t policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime_ns; /* of SCHED_OTHER: the slice */
	uint64_t deadline_ns;
	uint64_t period_ns;
};

int main(int argc, char **argv)
{
	struct attributes ordinary = { .size = sizeof(ordinary) };

	if (argc < 3) {
		fprintf(stderr, "usage: slice NANOSECONDS PROGRAM [ARGUMENT...]\n");
		return 2;
	}
	ordinary.runtime_ns = strtoull(argv[1], NULL, 10);
	if (syscall(SYS_sched_setattr, 0, &ordinary, 0)) {
		perror("slice: sched_setattr");
		return 125;
	}
	execvp(argv[2], argv + 2);
	perror(argv[2]);
	return 127;
}
