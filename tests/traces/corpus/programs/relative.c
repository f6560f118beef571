// Sleeps MS after work of up to MOST ms, and logs when each job began.
//
// usage: relative MS MOST

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	FILE *log = fopen(getenv("LOG"), "w");
	if (argc != 3 || !log)
		return 2;
	setvbuf(log, NULL, _IOLBF, 0);
	for (;;) {
		struct timespec now;
		clock_gettime(CLOCK_MONOTONIC, &now);
		fprintf(log, "%lld\n", now.tv_sec * 1000000000LL + now.tv_nsec);
		clock_t until =
			clock() + (clock_t)(atof(argv[2]) * 1e-3 * CLOCKS_PER_SEC * drand48());
		while (clock() < until)
			;
		usleep((useconds_t)(atof(argv[1]) * 1e3));
	}
}
