/* A library that is loaded while its program runs, and marks a job for whoever calls it. */
#include <onbeat/job.h>

void work(void);

void work(void)
{
	onbeat_realtime_finish_job();
}
