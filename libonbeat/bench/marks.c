/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What a call of mdn() costs its thread in nanoseconds, by the shortest of many batches.
 *
 * bench-marks alone: nobody listens. `onbeat record -o FILE -- bench-marks`: it waits until
 * somebody does. Built with -DONBEAT_PROBE_NOP=nop the probe is one byte long, and whoever listens
 * needs a breakpoint.
 */
#include <onbeat/mdn.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { BATCHES = 2000, CALLS = 100 };

static int64_t now_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static double shortest(void (*volatile call)(void))
{
	int64_t best = INT64_MAX;

	for (int batch = 0; batch < BATCHES; batch++) {
		int64_t began = now_ns(CLOCK_MONOTONIC), took;

		for (int i = 0; i < CALLS; i++)
			call();
		took = now_ns(CLOCK_MONOTONIC) - began;
		if (took < best)
			best = took;
	}
	return (double)best / CALLS;
}

int main(int argc, char **argv)
{
	unsigned char before[16], after[16];
	int64_t until = now_ns(CLOCK_MONOTONIC) + INT64_C(500000000);

	(void)argv;
	memcpy(before, (void *)onbeat_mdn, sizeof(before));
	while (argc > 1 && !memcmp((void *)onbeat_mdn, before, sizeof(before)) &&
	       now_ns(CLOCK_MONOTONIC) < until)
		sched_yield();
	onbeat_mdn();
	onbeat_mdn();
	memcpy(after, (void *)onbeat_mdn, sizeof(after));
	printf("%s: %.1f ns\n",
	       !memcmp(before, after, sizeof(before)) ? "nobody listens" :
	       memchr(after, 0xe8, sizeof(after))      ? "listened to, by a call" :
							 "listened to, by a breakpoint",
	       shortest(onbeat_mdn));
	return 0;
}
