/* A periodic task whose jobs need a number of cycles: the slower its CPU is set, the longer they take.
 *
 * The emulated CPU runs at one speed whatever cpufreq sets. So the task itself does what a slower CPU
 * would do to it: for each slice of its work it looks at the speed that is set, and spins as much longer as
 * that is lower than the highest. The loop, and what a look costs, are measured once, in CPU time of this thread.
 * As in clock.h the loop says PAUSE now and then, so that CPUs in virtual time take turns.
 *
 * usage: cycles PERIOD_MS WORK_US JOBS LOG [MORE_US [says]]
 *        WORK_US is what a job takes at the highest speed; with MORE_US up to so much more, the rarer the more. Who says
 *        by GRACE-OS's calls what its period is and where its jobs end also sleeps for 1 ms in the middle of each job.
 *        A line of LOG for each job: its number, release, start and end (us since the first release), CPU time
 *        used (us), speed at its begin (kHz), what it took at the highest speed (us), and its start once more (ns of
 *        CLOCK_MONOTONIC) */
#define _GNU_SOURCE
#include <fcntl.h>
#include <onbeat/job.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "clock.h"

#define CPUS 4
#define SLICE_US 25
#define PAUSE_NS 1000000L

struct job {
	long release_us, started_us, ended_us, used_us, khz, work_us, started_ns;
};

static void spin(long turns)
{
	for (long left; turns > 0; turns -= TURNS_IN_A_ROUND) {
		left = turns < TURNS_IN_A_ROUND ? turns : TURNS_IN_A_ROUND;
		__asm__ volatile("pause");
		while (left-- > 0) {
			__asm__ volatile("" : "+r"(left));
		}
	}
}

static long turns_per_ms(void)
{
	const long turns = 4000000;
	long began = now_ns(CLOCK_THREAD_CPUTIME_ID);
	spin(turns);
	return turns * 1000000 / (now_ns(CLOCK_THREAD_CPUTIME_ID) - began);
}

static int open_speed(int cpu, const char *file)
{
	char path[80];
	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/cpufreq/%s", cpu, file);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		perror(path);
		exit(1);
	}
	return fd;
}

static long read_khz(int fd)
{
	char text[32] = "";
	if (pread(fd, text, sizeof(text) - 1, 0) <= 0) {
		perror("frequency");
		exit(1);
	}
	return strtol(text, NULL, 10);
}

/* Of the CPU that this runs on, at present. */
static long present_khz(void)
{
	static int speeds[CPUS];
	int cpu = sched_getcpu() % CPUS;
	if (!speeds[cpu])
		speeds[cpu] = open_speed(cpu, "scaling_cur_freq");
	return read_khz(speeds[cpu]);
}

/* What one look at the speed takes. */
static long look_ns(void)
{
	const long looks = 1000;
	long began = now_ns(CLOCK_THREAD_CPUTIME_ID);
	for (long n = 0; n < looks; n++)
		present_khz();
	return (now_ns(CLOCK_THREAD_CPUTIME_ID) - began) / looks;
}

/*
 * Between 0 and `most`: the cube of what is spread evenly; any hundred jobs in a row have the same,
 * each another.
 */
static long more_us(long job, long most)
{
	double even = (double)(job * 37 % 100) / 99;
	return (long)((double)most * even * even * even);
}

int main(int argc, char **argv)
{
	if (argc < 5 || argc > 7) {
		fprintf(stderr, "usage: cycles PERIOD_MS WORK_US JOBS LOG [MORE_US [says]]\n");
		return 2;
	}
	long most_us = argc > 5 ? atol(argv[5]) : 0;
	bool says = argc > 6;
	long period_ns = atol(argv[1]) * 1000000, work_us = atol(argv[2]), jobs = atol(argv[3]);
	struct job *log = calloc((size_t)jobs, sizeof(*log));
	if (!log) {
		perror("calloc");
		return 1;
	}
	long highest = read_khz(open_speed(0, "cpuinfo_max_freq"));
	long per_ms = turns_per_ms(), look = look_ns();
	/* A release is no reason to be woken somewhat later. */
	prctl(PR_SET_TIMERSLACK, 1);

	long first = now_ns(CLOCK_MONOTONIC) + period_ns;
	for (long n = 0; n < jobs; n++) {
		struct job *job = &log[n];
		long release = first + n * period_ns;
		sleep_until(release);
		long used = now_ns(CLOCK_THREAD_CPUTIME_ID);
		job->release_us = (release - first) / 1000;
		job->started_ns = now_ns(CLOCK_MONOTONIC);
		job->started_us = (job->started_ns - first) / 1000;
		job->khz = present_khz();
		job->work_us = work_us + more_us(n, most_us);
		if (says)
			onbeat_realtime_start(period_ns, 950);
		bool paused = !says;
		for (long left_us = job->work_us; left_us > 0; left_us -= SLICE_US) {
			long slice_us = left_us < SLICE_US ? left_us : SLICE_US;
			long slice_ns = slice_us * highest / (present_khz() / 1000);
			spin((slice_ns - look) * per_ms / 1000000);
			if (!paused && left_us <= job->work_us / 2) {
				sleep_until(now_ns(CLOCK_MONOTONIC) + PAUSE_NS);
				paused = true;
			}
		}
		job->ended_us = (now_ns(CLOCK_MONOTONIC) - first) / 1000;
		job->used_us = (now_ns(CLOCK_THREAD_CPUTIME_ID) - used) / 1000;
		if (says)
			onbeat_realtime_finish_job();
	}

	FILE *file = fopen(argv[4], "w");
	if (!file) {
		perror(argv[4]);
		return 1;
	}
	for (long n = 0; n < jobs; n++) {
		struct job *job = &log[n];
		fprintf(file, "%ld %ld %ld %ld %ld %ld %ld %ld\n", n, job->release_us,
			job->started_us, job->ended_us, job->used_us, job->khz, job->work_us,
			job->started_ns);
	}
	return fclose(file) != 0;
}
