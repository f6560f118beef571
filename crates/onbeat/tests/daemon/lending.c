/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * spin: computes for 2 s of CPU time. wait: says "here", and waits for a lock with priority
 * inheritance that the thread whose number it reads has, as it claims.
 */
#include <linux/futex.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static void spin(void)
{
	struct timespec used;

	do
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
	while (used.tv_sec < 2);
}

int main(int count, char **words)
{
	uint32_t word;

	if (count == 2 && !strcmp(words[1], "spin")) {
		spin();
		return 0;
	}
	puts("here");
	fflush(stdout);
	if (scanf("%u", &word) != 1)
		return 1;
	if (syscall(SYS_futex, &word, FUTEX_LOCK_PI, 0, NULL, NULL, 0))
		perror("FUTEX_LOCK_PI");
	pause();
	return 0;
}
