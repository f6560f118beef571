/* A soft real-time program that leaves GRACE-OS in the middle of a job: it says so after some CPU time, and computes on for ever.
 *
 * usage: leaver CPU_MS */
#include <onbeat/job.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define PERIOD_NS 16000000L

static long used_ms(void)
{
	struct timespec time;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	return time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

int main(int argc, char **argv)
{
	if (argc != 2) {
		fprintf(stderr, "usage: leaver CPU_MS\n");
		return 2;
	}
	/* The scheduler comes to listen, and its plan counts from the next wakeup on. */
	sleep(2);
	onbeat_realtime_start(PERIOD_NS, 950);
	sleep(1);
	while (used_ms() < atol(argv[1])) {
	}
	onbeat_realtime_exit();
	for (;;) {
		__asm__ volatile("");
	}
}
