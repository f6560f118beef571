/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* mdn() and the job marks are prctl() with the documented numbers, and leave errno (M1). */
#define ONBEAT_SHORT_NAMES
#include <onbeat/job.h>
#include <onbeat/mdn.h>

#include <linux/ptrace.h>
#include <signal.h>

#include "check.h"

/* Declared here because <sys/ptrace.h> and <linux/ptrace.h> exclude each other. */
long ptrace(int request, ...);

static void mark(void)
{
	onbeat_mdn();
	check(!ptrace(PTRACE_TRACEME, 0, 0, 0));
	raise(SIGSTOP);
	errno = 7;
	syscall(SYS_getppid);
	onbeat_job_begin();
	mdn();
	onbeat_job_end();
	onbeat_realtime_start(INT64_C(40000000), 950);
	onbeat_realtime_finish_job();
	onbeat_realtime_exit();
	syscall(SYS_getppid);
	_exit(errno != 7);
}

int main(void)
{
	static const uint64_t calls[][3] = { { 1, 0, 0 }, { 3, 0, 0 }, { 2, 0, 0 },
					     { 4, 40000000, 950 }, { 2, 0, 0 }, { 5, 0, 0 } };
	enum { CALLS = sizeof(calls) / sizeof(calls[0]) };
	int status, seen = -1;
	pid_t child = fork();

	if (!child)
		mark();
	check(waitpid(child, &status, 0) == child && WIFSTOPPED(status));
	check(!ptrace(PTRACE_SETOPTIONS, child, 0, PTRACE_O_TRACESYSGOOD));
	for (;;) {
		struct ptrace_syscall_info call;

		check(!ptrace(PTRACE_SYSCALL, child, 0, 0));
		check(waitpid(child, &status, 0) == child);
		if (!WIFSTOPPED(status))
			break;
		check(ptrace(PTRACE_GET_SYSCALL_INFO, child, sizeof(call), &call) > 0);
		if (call.op == PTRACE_SYSCALL_INFO_EXIT && seen > 0 && seen <= CALLS)
			check(call.exit.rval == -EINVAL);
		if (call.op != PTRACE_SYSCALL_INFO_ENTRY)
			continue;
		if (call.entry.nr == SYS_getppid) {
			check(seen == -1 || seen == CALLS);
			seen++;
		} else if (seen >= 0 && seen < CALLS) {
			check(call.entry.nr == SYS_prctl && call.entry.args[0] == 0x4f4e4254);
			for (int i = 0; i < 3; i++)
				check(call.entry.args[i + 1] == calls[seen][i]);
			seen++;
		}
	}
	check(WIFEXITED(status) && !WEXITSTATUS(status));
	check(seen == CALLS + 1);
	return 0;
}
