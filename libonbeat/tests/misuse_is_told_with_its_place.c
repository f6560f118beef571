/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * In a debug build misuse ends the program with the place in the source: each kind is done in a child,
 * whose message is read.
 */
#include <onbeat/within.h>

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

static int leave_by_return(void)
{
	onbeat_try_within_rel (ONBEAT_S(100)) {
		return 1;
	}
	onbeat_handle
	onbeat_end;
	return 0;
}

static void returned(void)
{
	leave_by_return();
}

static void broken_out(void)
{
	onbeat_try {
		break;
	}
	onbeat_handle
	onbeat_end;
}

static void thrown_outside(void)
{
	onbeat_throw(onbeat_exception);
}

static void enabled_too_often(void)
{
	onbeat_within_enable();
}

static void too_deep(int depth)
{
	onbeat_try {
		if (depth <= onbeat_max_depth())
			too_deep(depth + 1);
	}
	onbeat_handle
	onbeat_end;
}

static void nested_too_deep(void)
{
	too_deep(0);
}

static void expect(void (*misuse)(void), const char *words, int debug_only)
{
	char text[1024];
	ssize_t length;
	int status;
	int pipes[2];
	pid_t child;

	check(pipe(pipes) == 0);
	child = fork();
	check(child >= 0);
	if (child == 0) {
		dup2(pipes[1], STDERR_FILENO);
		close(pipes[0]);
		close(pipes[1]);
		misuse();
		_exit(0);
	}
	close(pipes[1]);
	length = read(pipes[0], text, sizeof(text) - 1);
	close(pipes[0]);
	check(length >= 0);
	text[length] = 0;
	check(waitpid(child, &status, 0) == child);
#ifndef ONBEAT_DEBUG
	if (debug_only) {
		check(WIFEXITED(status) && length == 0);
		return;
	}
#endif
	(void)debug_only;
	check(WIFSIGNALED(status));
	if (!strstr(text, words) || !strstr(text, ".c:")) {
		fprintf(stderr, "wanted '%s', read: %s\n", words, text);
		exit(1);
	}
}

int main(void)
{
	expect(returned, "left by return", 1);
	expect(broken_out, "left by return, goto or break", 1);
	expect(enabled_too_often, "without onbeat_within_disable", 1);
	expect(thrown_outside, "no block handles it", 0);
	expect(nested_too_deep, "nested deeper than", 0);
#ifndef ONBEAT_DEBUG
	/* A build that goes on has put the thread's constraints right. */
	check(leave_by_return() == 1);
	check(onbeat_remaining() == ONBEAT_FOREVER);
#endif
	return 0;
}
