/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * GRACE-OS's interface: a thread says once that a job comes every 40 ms and that 96% of them are to be in
 * time, then the end of each job.
 *
 * cc -o soft_realtime soft_realtime.c $(pkg-config --cflags --libs onbeat)
 */
#include <onbeat/job.h>

#include <unistd.h>

int main(void)
{
	onbeat_realtime_start(40000000, 960);
	for (int job = 0; job < 5; job++) {
		for (volatile int i = 0; i < 100000; i++)
			;
		onbeat_realtime_finish_job();
		usleep(40000);
	}
	onbeat_realtime_exit();
	return 0;
}
