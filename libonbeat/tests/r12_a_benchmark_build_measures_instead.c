/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Requirement 12: the same source, built with ONBEAT_BENCHMARK, enforces nothing and measures. */
#define ONBEAT_BENCHMARK
#include <onbeat/within.h>

#include "check.h"

int main(void)
{
	char text[4096] = "", path[] = "/tmp/onbeat-benchmark-XXXXXX";
	volatile int completed = 0;
	long long count, least_ns;
	const char *found;
	FILE *file;

	check(close(mkstemp(path)) == 0);
	for (volatile int i = 0; i < 23; i++) {
		onbeat_try_within_rel (ONBEAT_US(100)) {
			compute_ns(ONBEAT_MS(1));
			completed++;
		}
		onbeat_handle
			onbeat_when (onbeat_deadline_violation) {
				check(0);
			}
		onbeat_end;
	}
	check(completed == 23);
	check(onbeat_benchmark_write("/dev/null", path) == 0);
	file = fopen(path, "r");
	check(file && fread(text, 1, sizeof(text) - 1, file) > 0);
	fclose(file);
	unlink(path);
	found = strstr(text, "\"count\": ");
	check(found && sscanf(found, "\"count\": %lld, \"min_ns\": %lld", &count, &least_ns) == 2);
	check(count == 23 && least_ns >= ONBEAT_MS(1));
	check(strstr(text, "r12_a_benchmark_build_measures_instead.c"));
	check(onbeat_benchmark_write("/nowhere/at/all", "/dev/null") < 0);
	return 0;
}
