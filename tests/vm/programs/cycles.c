/* A periodic task whose jobs need a number of cycles: the slower its CPU is set, the longer they take.
 *
 * The emulated CPU runs at one speed whatever cpufreq sets. So the task itself does what a slower CPU
 * would do to it: for each slice of its work it looks at the speed that is set, and spins as much longer as
 * that is lower than the highest. The loop is measured once, in CPU time of this thread.
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
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define POLICY "/sys/devices/system/cpu/cpufreq/policy0/"
#define SLICE_US 500
#define PAUSE_NS 1000000L
#define NS_PER_S 1000000000L

struct job {
	long release_us, started_us, ended_us, used_us, khz, work_us, started_ns;
};

static long now_ns(clockid_t clock)
{
	struct timespec time;
	clock_gettime(clock, &time);
	return time.tv_sec * NS_PER_S + time.tv_nsec;
}

static void sleep_until(long ns)
{
	struct timespec time = { ns / NS_PER_S, ns % NS_PER_S };
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL) != 0) {
	}
}

static void spin(long turns)
{
	while (turns-- > 0) {
		__asm__ volatile("" : "+r"(turns));
	}
}

static long turns_per_us(void)
{
	const long turns = 4000000;
	long began = now_ns(CLOCK_THREAD_CPUTIME_ID);
	spin(turns);
	return turns * 1000 / (now_ns(CLOCK_THREAD_CPUTIME_ID) - began) + 1;
}

static int open_speed(const char *file)
{
	int fd = open(file, O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		perror(file);
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

/* Between 0 and `most`: the cube of what is spread evenly. */
static long more_us(long job, long most)
{
	double even = (double)(job * 37 % 101) / 100;
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
	int speed = open_speed(POLICY "scaling_cur_freq");
	long highest = read_khz(open_speed(POLICY "cpuinfo_max_freq"));
	long per_us = turns_per_us();

	long first = now_ns(CLOCK_MONOTONIC) + period_ns;
	for (long n = 0; n < jobs; n++) {
		struct job *job = &log[n];
		long release = first + n * period_ns;
		sleep_until(release);
		long used = now_ns(CLOCK_THREAD_CPUTIME_ID);
		job->release_us = (release - first) / 1000;
		job->started_ns = now_ns(CLOCK_MONOTONIC);
		job->started_us = (job->started_ns - first) / 1000;
		job->khz = read_khz(speed);
		job->work_us = work_us + more_us(n, most_us);
		if (says)
			onbeat_realtime_start(period_ns, 950);
		bool paused = !says;
		for (long left_us = job->work_us; left_us > 0; left_us -= SLICE_US) {
			long slice_us = left_us < SLICE_US ? left_us : SLICE_US;
			spin(slice_us * per_us * (highest / 1000) / (read_khz(speed) / 1000));
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
