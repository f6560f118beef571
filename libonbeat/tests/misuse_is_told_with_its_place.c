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

static void gone_on(void)
{
	for (int i = 0; i < 1; i++) {
		onbeat_try {
			onbeat_within_disable();
			goto out;
		}
		onbeat_handle
		onbeat_end;
	}
out:
	return;
}

static void left_finally(void)
{
	onbeat_try {
	}
	onbeat_finally {
		goto out;
	}
	onbeat_handle
	onbeat_end;
out:
	return;
}

static void left_handler(void)
{
	onbeat_try {
		onbeat_throw(onbeat_exception);
	}
	onbeat_handle
		onbeat_when (onbeat_exception) {
			return;
		}
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
	if (!strstr(text, words) || !strstr(text, "misuse_is_told_with_its_place.c:")) {
		fprintf(stderr, "wanted '%s', read: %s\n", words, text);
		exit(1);
	}
}

#ifndef ONBEAT_DEBUG
/* Whether a violation still comes through: nothing was left protected. */
static int interrupted(void)
{
	volatile int violated = 0;

	onbeat_try_within_rel (ONBEAT_MS(1)) {
		compute_for_ever();
	}
	onbeat_handle
		onbeat_when (onbeat_deadline_violation) {
			violated = 1;
		}
	onbeat_end;
	return violated;
}
#endif

int main(void)
{
	expect(returned, "left by return", 1);
	expect(broken_out, "left by return, goto or break", 1);
	expect(gone_on, "left by return, goto or break", 1);
	expect(left_finally, "left by return, goto or break", 1);
	expect(left_handler, "left by return, goto or break", 1);
	expect(enabled_too_often, "without onbeat_within_disable", 1);
	expect(thrown_outside, "no block handles it", 0);
	expect(nested_too_deep, "nested deeper than", 0);
#ifndef ONBEAT_DEBUG
	/* A build that goes on has put the thread's constraints right. */
	check(leave_by_return() == 1);
	gone_on();
	left_finally();
	left_handler();
	check(onbeat_remaining() == ONBEAT_FOREVER);
	check(interrupted());
#endif
	return 0;
}
