/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The room that the kernel's admission test has left: the limit less what SCHED_DEADLINE tasks
 * hold. The kernel shows that sum to root only, so it is added up from the tasks themselves.
 */
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <onbeat/reserve.h>

#include "reservation.h"

static int64_t permille_of_thread(pid_t tid)
{
	struct onbeat_attributes attributes;

	if (onbeat_scheduler_->get(tid, &attributes) ||
	    attributes.policy != ONBEAT_POLICY_DEADLINE || attributes.period_ns == 0)
		return 0;
	/* Rounded up: what is reported free must be free. */
	return (int64_t)((attributes.runtime_ns * 1000 + attributes.period_ns - 1) /
			 attributes.period_ns);
}

static int64_t permille_of_process(const char *pid)
{
	char path[300];
	struct dirent *entry;
	int64_t sum = 0;
	DIR *tasks;

	snprintf(path, sizeof(path), "/proc/%s/task", pid);
	tasks = opendir(path);
	if (!tasks)
		return 0;
	while ((entry = readdir(tasks))) {
		if (entry->d_name[0] >= '0' && entry->d_name[0] <= '9')
			sum += permille_of_thread((pid_t)strtol(entry->d_name, NULL, 10));
	}
	closedir(tasks);
	return sum;
}

long long onbeat_read_(const char *path, const char *format, long long otherwise)
{
	FILE *file = fopen(path, "re");
	long long number = otherwise;

	if (file && fscanf(file, format, &number) != 1)
		number = otherwise;
	if (file)
		fclose(file);
	return number;
}

/*
 * The limit, in thousandths of a CPU for each CPU. Read once: on some kernels (6.18 among them)
 * even reading these files makes the kernel count all SCHED_DEADLINE tasks anew, and forget those
 * that stopped less than a period ago.
 */
static int64_t limit_permille;
static pthread_once_t limit_read = PTHREAD_ONCE_INIT;

static void read_limit(void)
{
	int64_t period_us = onbeat_read_("/proc/sys/kernel/sched_rt_period_us", "%lld", 1000000);
	int64_t runtime_us = onbeat_read_("/proc/sys/kernel/sched_rt_runtime_us", "%lld", 950000);

	/* A runtime of -1 is no limit. */
	limit_permille = period_us <= 0 || runtime_us < 0 ? 1000 : runtime_us * 1000 / period_us;
}

int onbeat_reservation_available(int *permille)
{
	int64_t free_permille;
	struct dirent *entry;
	DIR *processes = opendir("/proc");

	if (!processes)
		return -errno;
	pthread_once(&limit_read, read_limit);
	free_permille = (int64_t)sysconf(_SC_NPROCESSORS_ONLN) * limit_permille;
	while ((entry = readdir(processes))) {
		if (entry->d_name[0] >= '0' && entry->d_name[0] <= '9')
			free_permille -= permille_of_process(entry->d_name);
	}
	closedir(processes);
	*permille = free_permille > 0 ? (int)free_permille : 0;
	return 0;
}
