/* When a player has shown each frame: mplayer tells so, in a line that begins with `V:`.
 *
 * It runs before all ordinary tasks (SCHED_FIFO), so that the scheduler that the player is under does not delay it.
 *
 * usage: mplayer -nosound ... | shown LOG
 *        A line of LOG for each frame: when it came, in us since the first. */
#include <sched.h>
#include <stdio.h>

#include "clock.h"

int main(int argc, char **argv)
{
	struct sched_param first = { .sched_priority = 50 };
	int byte, before = 0;
	long began_us = -1;
	FILE *log;

	if (argc != 2)
		return 2;
	log = fopen(argv[1], "w");
	if (!log || sched_setscheduler(0, SCHED_FIFO, &first)) {
		perror("shown");
		return 1;
	}
	while ((byte = getchar()) != EOF) {
		if (before == 'V' && byte == ':') {
			long at_us = now_ns(CLOCK_MONOTONIC) / 1000;

			if (began_us < 0)
				began_us = at_us;
			fprintf(log, "%ld\n", at_us - began_us);
		}
		before = byte;
	}
	return fclose(log) ? 1 : 0;
}
