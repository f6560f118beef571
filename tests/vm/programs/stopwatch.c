/*
 * Runs a program, and writes how long that took and its CPU time (us) to a file; gives its exit
 * status.
 *
 * It stands between a tracer and the program, and so leaves out what the tracer takes to start and
 * to end.
 *
 * usage: stopwatch FILE PROGRAM [ARGUMENT...]
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"

static long timeval_us(struct timeval time)
{
	return time.tv_sec * 1000000 + time.tv_usec;
}

int main(int argc, char **argv)
{
	if (argc < 3) {
		fprintf(stderr, "usage: stopwatch FILE PROGRAM [ARGUMENT...]\n");
		return 2;
	}
	struct rusage used;
	int status;
	long began_ns = now_ns(CLOCK_MONOTONIC);
	pid_t program = fork();
	if (program == 0) {
		execvp(argv[2], argv + 2);
		perror(argv[2]);
		_exit(127);
	}
	if (program < 0 || wait4(program, &status, 0, &used) != program) {
		perror("stopwatch");
		return 1;
	}
	long lasted_us = (now_ns(CLOCK_MONOTONIC) - began_ns) / 1000;
	FILE *file = fopen(argv[1], "w");
	if (!file ||
	    fprintf(file, "%ld %ld\n", lasted_us,
		    timeval_us(used.ru_utime) + timeval_us(used.ru_stime)) < 0 ||
	    fclose(file) != 0) {
		perror(argv[1]);
		return 1;
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
