/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Benchmark mode: the same source, compiled with -DONBEAT_BENCHMARK, measures its blocks instead of
 * limiting them. The table says how long each takes, from which its limit is chosen.
 *
 * cc -o choose_a_limit choose_a_limit.c $(pkg-config --cflags --libs onbeat)
 */
#define ONBEAT_BENCHMARK
#include <onbeat/within.h>

#include <stdio.h>
#include <string.h>

int main(void)
{
	int error;

	for (volatile int i = 0; i < 1000; i++) {
		onbeat_try_within_rel (ONBEAT_US(1)) {
			for (volatile int j = 0; j < 1000 * (i % 10); j++)
				;
		}
		onbeat_handle
			onbeat_when (onbeat_deadline_violation) {
				puts("never: nothing is enforced");
				return 1;
			}
		onbeat_end;
	}
	/* Written at the program's end as well; ONBEAT_BENCHMARK_OUT names those files. */
	error = onbeat_benchmark_write("/dev/stdout", "/dev/null");
	if (error)
		fprintf(stderr, "no table: %s\n", strerror(-error));
	return error ? 1 : 0;
}
