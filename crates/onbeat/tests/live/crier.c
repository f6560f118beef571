/*
 * A program without a rhythm that cries: crier sleeps|floods
 * "sleeps" computes a little, says that it was late, and sleeps for any time up to 20 ms. "floods"
 * says that it was late as often as it can, and never blocks.
 */
#define _GNU_SOURCE
#include <onbeat/mdn.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	uint64_t random = 88172645463325252u;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* Undo the nice value that the test was started with. */
	setpriority(PRIO_PROCESS, 0, 0);
	while (argc > 1 && !strcmp(argv[1], "sleeps")) {
		for (volatile int turn = 0; turn < 100000; turn++)
			;
		onbeat_mdn();
		random ^= random << 13;
		random ^= random >> 7;
		random ^= random << 17;
		usleep(random % 20000);
	}
	for (;;)
		onbeat_mdn();
}
