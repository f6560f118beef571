/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * GRACE-OS's interface: a thread says that a job comes every 40 ms and that 96% of them are to be
 * in time, and the end of each job. It says the first with each job, too: the listener may come
 * later.
 *
 * cc -o soft_realtime soft_realtime.c $(pkg-config --cflags onbeat)
 */
#include <onbeat/job.h>

#include <unistd.h>

int main(void)
{
	for (int job = 0; job < 5; job++) {
		onbeat_realtime_start(40000000, 960);
		for (volatile int i = 0; i < 100000; i++)
			;
		onbeat_realtime_finish_job();
		usleep(40000);
	}
	onbeat_realtime_exit();
	return 0;
}
