/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * spin: computes for 10 s of CPU time. wait: says "here", and waits for a lock with priority
 * inheritance that the thread whose number it reads has, as it claims. What it has by then lasts
 * for microseconds, and what it takes above that it must wait for, so it hardly does anything.
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
	while (used.tv_sec < 10);
}

int main(int count, char **words)
{
	static char line[16];
	uint32_t word = 0;

	if (count == 2 && !strcmp(words[1], "spin")) {
		spin();
		return 0;
	}
	puts("here");
	fflush(stdout);
	if (read(0, line, sizeof(line) - 1) <= 0)
		return 1;
	for (const char *digit = line; *digit >= '0' && *digit <= '9'; digit++)
		word = word * 10 + *digit - '0';
	if (syscall(SYS_futex, &word, FUTEX_LOCK_PI, 0, NULL, NULL, 0))
		perror("FUTEX_LOCK_PI");
	pause();
	return 0;
}
