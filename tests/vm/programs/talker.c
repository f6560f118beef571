/* A program that uses GRACE-OS's calls in another way than their authors meant.
 *
 * usage: talker leaves CPU_MS   says in the middle of a job that it is soft real-time no longer, and computes on for ever
 *        talker ends           says that it is soft real-time, and is gone
 *        talker works          has a job every 40 ms, says so with each, and where it begins and ends
 *        talker floods          says in a loop without end that it is soft real-time, each time with another period */
#include <onbeat/job.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"

#define PERIOD_NS 16000000L

static long used_ms(void)
{
	return now_ns(CLOCK_THREAD_CPUTIME_ID) / 1000000;
}

static void leave(long after_ms)
{
	/* The scheduler comes to listen, and its plan counts from the next wakeup on. */
	sleep(2);
	onbeat_realtime_start(PERIOD_NS, 950);
	sleep(1);
	while (used_ms() < after_ms) {
	}
	onbeat_realtime_exit();
	for (;;) {
		__asm__ volatile("");
	}
}

int main(int argc, char **argv)
{
	if (argc == 3 && strcmp(argv[1], "leaves") == 0) {
		leave(atol(argv[2]));
	}
	if (argc == 2 && strcmp(argv[1], "ends") == 0) {
		sleep(2);
		onbeat_realtime_start(PERIOD_NS, 950);
		return 0;
	}
	while (argc == 2 && strcmp(argv[1], "works") == 0) {
		long end_ms = used_ms() + 2;

		onbeat_realtime_start(40000000, 950);
		onbeat_job_begin();
		while (used_ms() < end_ms) {
		}
		onbeat_job_end();
		usleep(38000);
	}
	if (argc != 2 || strcmp(argv[1], "floods") != 0) {
		fprintf(stderr, "usage: talker leaves CPU_MS | talker ends | talker works | talker "
				"floods\n");
		return 2;
	}
	for (long more_ns = 0;; more_ns = (more_ns + 1) % PERIOD_NS) {
		onbeat_realtime_start(PERIOD_NS + more_ns, 950);
	}
}
