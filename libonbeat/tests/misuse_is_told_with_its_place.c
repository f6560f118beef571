/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * In a debug build, or with ONBEAT_DEBUG in the environment, misuse ends the program with the place
 * in the source: each kind is done in a child, whose message is read.
 */
#include <onbeat/within.h>

#include <setjmp.h>
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

static void continued(void)
{
	for (int i = 0; i < 2; i++) {
		onbeat_try {
			continue;
		}
		onbeat_handle
		onbeat_end;
	}
}

static void continued_in_finally(void)
{
	onbeat_try {
	}
	onbeat_finally {
		continue;
	}
	onbeat_handle
	onbeat_end;
}

static void continued_in_handler(void)
{
	onbeat_try {
		onbeat_throw(onbeat_exception);
	}
	onbeat_handle
		onbeat_when (onbeat_exception) {
			continue;
		}
	onbeat_end;
}

static jmp_buf outside;

__attribute__((noinline)) static void jump_out(void)
{
	onbeat_try_within_rel (ONBEAT_S(100)) {
		onbeat_within_disable();
		longjmp(outside, 1);
	}
	onbeat_handle
	onbeat_end;
}

static void jumped_out(void)
{
	if (!setjmp(outside))
		jump_out();
	onbeat_try {
	}
	onbeat_handle
	onbeat_end;
}

static void jumped_out_of_the_same_function(void)
{
	/* The second time it is entered it has been left. */
	setjmp(outside);
	onbeat_try_within_rel (ONBEAT_S(100)) {
		static volatile int times;

		if (times++ == 0)
			longjmp(outside, 1);
	}
	onbeat_handle
	onbeat_end;
}

static void jumped_out_of_an_inner_block(void)
{
	onbeat_try {
		if (!setjmp(outside)) {
			onbeat_try {
				longjmp(outside, 1);
			}
			onbeat_handle
			onbeat_end;
		}
	}
	onbeat_handle
	onbeat_end;
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

/* Runs a misuse in a child: its output, and how it ends. */
static int status_of(void (*misuse)(void), int debug, char text[1024])
{
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
		if (debug)
			setenv("ONBEAT_DEBUG", "1", 1);
		misuse();
		_exit(0);
	}
	close(pipes[1]);
	length = read(pipes[0], text, 1023);
	close(pipes[0]);
	check(length >= 0);
	text[length] = 0;
	check(waitpid(child, &status, 0) == child);
	return status;
}

static void expect(void (*misuse)(void), const char *words, int debug_only)
{
	char text[1024];
	int status;

#ifndef ONBEAT_DEBUG
	if (debug_only) {
		status = status_of(misuse, 0, text);
		check(WIFEXITED(status) && !text[0]);
	}
#endif
	status = status_of(misuse, debug_only, text);
	if (!WIFSIGNALED(status) || !strstr(text, words) || !strstr(text, "misuse_is_told_with_its_place.c:")) {
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
	/* The portable form cannot know that a block's function has been left. */
	const char *form = getenv("ONBEAT_FORM");

	expect(returned, "left by return", 1);
	expect(broken_out, "left by return, goto or break", 1);
	expect(gone_on, "left by return, goto or break", 1);
	expect(continued, "left by continue", 1);
	expect(continued_in_finally, "left by continue", 1);
	expect(continued_in_handler, "left by continue", 1);
	expect(jumped_out_of_the_same_function, "left by longjmp", 1);
	expect(jumped_out_of_an_inner_block, "left by longjmp", 1);
	if (!form || strcmp(form, "posix") != 0)
		expect(jumped_out, "left by longjmp", 1);
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
	continued();
	jumped_out_of_the_same_function();
	jumped_out_of_an_inner_block();
	if (!form || strcmp(form, "posix") != 0)
		jumped_out();
	check(onbeat_remaining() == ONBEAT_FOREVER);
	check(interrupted());
#endif
	return 0;
}
