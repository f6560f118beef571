/* Who takes more than it may by locks with priority inheritance, and what that does to others.
 *
 * usage: heirs spin CPU SECONDS LOG   computes there; a line of LOG each 100 ms: the time, and the CPU time at an
 *                                     effective priority above ordinary so far, by the kernel's account (ms, us)
 *        heirs wait FILE MS           waits for so long for a lock that the thread whose number stands there has
 *        heirs gaps CPU SECONDS       as a thread of SCHED_FIFO 50 that wants the CPU each ms: prints the longest
 *                                     time without it (us)
 *        heirs as UID COMMAND...      runs it as that user */
#define _GNU_SOURCE
#include <fcntl.h>
#include <grp.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "clock.h"

#define LINE_NS 100000000L

static void stay_on(int cpu)
{
	cpu_set_t one;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	sched_setaffinity(0, sizeof(one), &one);
}

/* The effective priority, as proc(5) has it: below 0 is real-time and deadline, 20 is ordinary. */
static int priority(int stat)
{
	char text[512];
	ssize_t length = pread(stat, text, sizeof(text) - 1, 0);
	char *field;
	text[length > 0 ? length : 0] = 0;
	field = strrchr(text, ')');
	for (int i = 3; field && i <= 18; i++)
		field = strchr(field + 1, ' ');
	return field ? atoi(field) : 20;
}

static int spin(long seconds, const char *path)
{
	int stat = open("/proc/thread-self/stat", O_RDONLY);
	FILE *log = fopen(path, "w");
	long began = now_ns(CLOCK_MONOTONIC), now = began, used = now_ns(CLOCK_THREAD_CPUTIME_ID);
	long above = 0, line = 0;
	int before = priority(stat);

	if (!log)
		return 1;
	while (now < began + seconds * NS_PER_S) {
		/* Of several emulated CPUs the next has its turn now (clock.h). */
		__builtin_ia32_pause();
		long used_now = now_ns(CLOCK_THREAD_CPUTIME_ID);
		int after = priority(stat);
		if (before < 20 && after < 20)
			above += used_now - used;
		used = used_now;
		before = after;
		now = now_ns(CLOCK_MONOTONIC);
		if (now / LINE_NS != line) {
			line = now / LINE_NS;
			fprintf(log, "%ld %ld\n", line * 100, above / 1000);
		}
	}
	return fclose(log);
}

static int wait_for_lock(const char *path, long ms)
{
	long until = now_ns(CLOCK_REALTIME) + ms * 1000000;
	struct timespec time = { until / NS_PER_S, until % NS_PER_S };
	uint32_t word = 0;
	FILE *file = fopen(path, "r");
	if (!file || fscanf(file, "%u", &word) != 1)
		return 1;
	syscall(SYS_futex, &word, FUTEX_LOCK_PI, 0, &time, NULL, 0);
	return 0;
}

static int gaps(long seconds)
{
	struct sched_param fifo = { .sched_priority = 50 };
	struct timespec ms = { 0, 1000000 };
	long began = now_ns(CLOCK_MONOTONIC), last = began, longest = 0;
	if (sched_setscheduler(0, SCHED_FIFO, &fifo) != 0)
		return 1;
	while (last < began + seconds * NS_PER_S) {
		long now;
		nanosleep(&ms, NULL);
		now = now_ns(CLOCK_MONOTONIC);
		if (now - last > longest)
			longest = now - last;
		last = now;
	}
	printf("%ld\n", longest / 1000);
	return 0;
}

int main(int count, char **words)
{
	const char *what = count > 3 ? words[1] : "";
	if (!strcmp(what, "as")) {
		int id = atoi(words[2]);
		if (setgroups(0, NULL) || setgid(id) || setuid(id))
			return 1;
		execvp(words[3], words + 3);
	} else if (!strcmp(what, "wait")) {
		return wait_for_lock(words[2], atol(words[3]));
	} else if (!strcmp(what, "spin") && count > 4) {
		stay_on(atoi(words[2]));
		return spin(atol(words[3]), words[4]);
	} else if (!strcmp(what, "gaps")) {
		stay_on(atoi(words[2]));
		return gaps(atol(words[3]));
	}
	return 2;
}
