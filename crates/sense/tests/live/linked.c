/*
 * Says what it is before anything else, and has its jobs marked by a library that it links
 * (library.c).
 */
#include <onbeat/job.h>

void work(void);

int main(void)
{
	onbeat_realtime_start(40000000, 950);
	for (int job = 0; job < 1009; job++)
		work();
	return 0;
}
