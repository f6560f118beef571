/* Works 4 ms a frame, and waits for the next one as games with a limit of their frame rate do: it
   yields. */
#include "beat.h"
#include <sched.h>

int main(void)
{
	double began = ms();
	for (double due = began; due < began + seconds_to_run() * 1e3; due += 1e3 / 60) {
		while (ms() < due)
			sched_yield();
		tell(ms());
		work(4);
	}
	print_told();
	return 0;
}
