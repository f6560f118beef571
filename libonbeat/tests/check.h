/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Needed by every test program: a check that says where it failed, and ways to let time pass. */
#ifndef ONBEAT_TESTS_CHECK_H
#define ONBEAT_TESTS_CHECK_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define SKIPPED 77

#define check(condition)                                                                       \
	do {                                                                                   \
		if (!(condition)) {                                                            \
			fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
			exit(1);                                                               \
		}                                                                              \
	} while (0)

static inline int64_t read_clock(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static inline int64_t now_ns(void)
{
	return read_clock(CLOCK_MONOTONIC);
}

/* Computes until something else ends it; if nothing does for a minute, that is a failure. */
static inline void compute_for_ever(void)
{
	int64_t end_ns = now_ns() + INT64_C(60000000000);

	while (now_ns() < end_ns)
		;
	fprintf(stderr, "nothing interrupted this computation for a minute\n");
	exit(1);
}

/* Computes until `ns` have passed. */
static inline void compute_ns(int64_t ns)
{
	int64_t end_ns = now_ns() + ns;

	while (now_ns() < end_ns)
		;
}

#endif
