/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Requirement 12: the same source, built with ONBEAT_BENCHMARK, enforces nothing and measures. */
#define ONBEAT_BENCHMARK
#include <onbeat/within.h>

#include <string.h>
#include <unistd.h>

#include "check.h"

static char folder[] = "/tmp/onbeat-benchmark-XXXXXX";

/* Registered before the library's own, and so called after it has written. */
static void remove_folder(void)
{
	static const char *const names[] = { "out.txt", "out.json" };
	char path[64];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
		unlink(path);
	}
	rmdir(folder);
}

int main(void)
{
	char table[64], json[64], at_exit[64], text[4096];
	volatile int completed = 0;
	long long count, least_ns;
	const char *found;
	size_t length;
	FILE *file;

	check(mkdtemp(folder) && atexit(remove_folder) == 0);
	snprintf(table, sizeof(table), "%s/out.txt", folder);
	snprintf(json, sizeof(json), "%s/out.json", folder);
	snprintf(at_exit, sizeof(at_exit), "%s/out", folder);
	setenv("ONBEAT_BENCHMARK_OUT", at_exit, 1);
	for (volatile int i = 0; i < 23; i++) {
		onbeat_try_within_rel (ONBEAT_US(100)) {
			compute_ns(ONBEAT_MS(1));
			completed++;
		}
		onbeat_handle
			onbeat_when (onbeat_deadline_violation) {
				completed = 1000;
			}
		onbeat_end;
	}
	check(completed == 23);
	check(onbeat_benchmark_write(table, json) == 0);
	file = fopen(json, "r");
	check(file);
	length = fread(text, 1, sizeof(text) - 1, file);
	text[length] = 0;
	fclose(file);
	found = strstr(text, "\"count\": ");
	check(found && sscanf(found, "\"count\": %lld, \"min_ns\": %lld", &count, &least_ns) == 2);
	check(count == 23);
	check(least_ns >= ONBEAT_MS(1));
	check(strstr(text, "r12_a_benchmark_build_measures_instead.c"));
	check(onbeat_benchmark_write("/nowhere/at/all", json) < 0);
	return 0;
}
