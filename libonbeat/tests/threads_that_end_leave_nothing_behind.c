/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Thousands of threads with constraints come and go: no timer, descriptor or memory is kept. */
#include <onbeat/within.h>

#include <dirent.h>
#include <pthread.h>

#include "check.h"

static void *run(void *argument)
{
	(void)argument;
	onbeat_try_within_rel (ONBEAT_S(100)) {
		onbeat_try_within_wcet (ONBEAT_S(100)) {
		}
		onbeat_handle
		onbeat_end;
	}
	onbeat_handle
	onbeat_end;
	return NULL;
}

static void round_of_threads(int count)
{
	for (int i = 0; i < count; i++) {
		pthread_t thread;

		check(pthread_create(&thread, NULL, run, NULL) == 0);
		check(pthread_join(thread, NULL) == 0);
	}
}

static int open_descriptors(void)
{
	DIR *folder = opendir("/proc/self/fd");
	int count = 0;

	check(folder);
	while (readdir(folder))
		count++;
	closedir(folder);
	return count;
}

static int timers(void)
{
	FILE *file = fopen("/proc/self/timers", "r");
	char line[256];
	int count = 0;

	if (!file)
		return 0;
	while (fgets(line, sizeof(line), file))
		count++;
	fclose(file);
	return count;
}

int main(void)
{
	int descriptors;
	int armed;

	round_of_threads(10);
	descriptors = open_descriptors();
	armed = timers();
	round_of_threads(2000);
	check(open_descriptors() == descriptors);
	check(timers() == armed);
	return 0;
}
