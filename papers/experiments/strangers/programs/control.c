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
	print_figures(in_time);
	return 0;
}
