/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A program that closes perf's clock, as with closefrom(3), has its limits enforced as before, and
 * what it opens under that number stays open when the thread ends.
 */
#include <onbeat/within.h>

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "check.h"

static volatile int descriptor = -1;

/* Closes perf's clock, if this thread has one, and has its number denote something else. */
static void replace_clock(void)
{
	DIR *folder = opendir("/proc/self/fd");
	struct dirent *entry;
	char name[64];

	check(folder);
	while ((entry = readdir(folder))) {
		ssize_t length = readlinkat(dirfd(folder), entry->d_name, name, sizeof(name) - 1);

		name[length < 0 ? 0 : length] = 0;
		if (strstr(name, "[perf_event]"))
			descriptor = atoi(entry->d_name);
	}
	closedir(folder);
	if (descriptor >= 0)
		check(dup2(STDERR_FILENO, descriptor) == descriptor);
}

static void exceed_a_limit(void)
{
	volatile int violated = 0;

	onbeat_try_within_wcet (ONBEAT_MS(3)) {
		compute_for_ever();
	}
	onbeat_handle
		onbeat_when (onbeat_wcet_violation) {
			violated++;
		}
	onbeat_end;
	check(violated == 1);
}

static void *run(void *unused)
{
	exceed_a_limit();
	replace_clock();
	exceed_a_limit();
	exceed_a_limit();
	return unused;
}

int main(void)
{
	pthread_t thread;

	check(pthread_create(&thread, NULL, run, NULL) == 0);
	check(pthread_join(thread, NULL) == 0);
	check(descriptor < 0 || fcntl(descriptor, F_GETFD) >= 0);
	return 0;
}
