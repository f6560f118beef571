/*
 * A program that computes nothing, but changes its own nice value all the time. Each change takes
 * it off its CPU for a moment, as far as the kernel's classes can tell.
 */
#include <stdio.h>
#include <sys/resource.h>

int main(void)
{
	for (int nice = 0;; nice = !nice) {
		if (setpriority(PRIO_PROCESS, 0, nice) != 0) {
			perror("restless");
			return 1;
		}
	}
}
