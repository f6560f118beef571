/* A library that is loaded while its program runs, and marks a job for its caller. */
#include <onbeat/job.h>

void work(void);

void work(void)
{
	onbeat_realtime_finish_job();
}
