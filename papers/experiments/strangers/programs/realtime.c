/* A thread of 5 ms with SCHED_FIFO, as sound programs make theirs, and one of 60 Hz that draws. */
#include "beat.h"
#include <pthread.h>

static void *audio(void *arg)
{
	for (double due = ms();; due += 5) {
		sleep_until(due);
		work(1);
		tell(ms());
	}
	return arg;
}

int main(void)
{
	pthread_attr_t attr;
	struct sched_param param = { .sched_priority = 10 };
	pthread_t t;
	pthread_attr_init(&attr);
	pthread_attr_setinheritsched(&attr, PTHREAD_EXPLICIT_SCHED);
	pthread_attr_setschedpolicy(&attr, SCHED_FIFO);
	pthread_attr_setschedparam(&attr, &param);
	double began = ms();
	if (pthread_create(&t, &attr, audio, NULL))
		return 1;
	for (double due = began; due < began + seconds_to_run() * 1e3; due += 1e3 / 60) {
		sleep_until(due);
		work(4);
	}
	print_told();
	exit(0);
}
