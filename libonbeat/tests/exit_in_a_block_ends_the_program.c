/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * exit(3) in a block ends the program with its status, also if the deadline passes while a function
 * runs that was registered with atexit(3) before the process's first block.
 */
#include <onbeat/within.h>

#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

static void (*end)(int);
static volatile int ends;

static void outlast_the_deadline(void)
{
	ends = 1;
	compute_ns(ONBEAT_MS(60));
}

static void end_in_a_block(void)
{
	check(atexit(outlast_the_deadline) == 0 && at_quick_exit(outlast_the_deadline) == 0);
	onbeat_try_within_rel (ONBEAT_MS(30)) {
		end(3);
	}
	onbeat_handle
		onbeat_when (onbeat_deadline_violation) {
			/*
			 * Right only on a machine that stood still before the program began to end.
			 */
			_exit(ends ? 4 : 3);
		}
	onbeat_end;
	_exit(5);
}

int main(void)
{
	void (*const all[])(int) = { exit, quick_exit };

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		pid_t child = fork();
		int status;

		check(child >= 0);
		end = all[i];
		if (child == 0)
			end_in_a_block();
		check(waitpid(child, &status, 0) == child);
		check(WIFEXITED(status) && WEXITSTATUS(status) == 3);
	}
	return 0;
}
