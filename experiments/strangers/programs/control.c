/* A thread that works 3 ms in each 20 ms, and one that packs logs for 120 ms each second. */
#include "beat.h"
#include <pthread.h>
#include <unistd.h>

static void *logs(void *arg)
{
	for (;; work(120))
		usleep(880000);
	return arg;
}

static int up(const void *a, const void *b)
{
	double x = *(double *)a, y = *(double *)b;
	return (x > y) - (x < y);
}

int main(void)
{
	int n = (int)(seconds_to_run() * 50), in_time = 0;
	double began = ms() + 100;
	pthread_t t;
	pthread_create(&t, NULL, logs, NULL);
	for (int k = 0; k < n && ms() < began + n * 20.0; k++) {
		sleep_until(began + k * 20.0);
		work(3);
		tell(ms() - began - k * 20.0);
		in_time += told_ms[told - 1] <= 20;
	}
	qsort(told_ms, told, sizeof *told_ms, up);
	printf("count %d\np99_ms %.1f\n", in_time, told_ms[told * 99 / 100]);
	return 0;
}
