/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * M1: mdn() and the job marks are prctl() with the documented numbers, and leave errno. A filter of
 * system calls that a program was started with may kill for that: then nothing is marked, and the
 * program does not notice.
 */
#define ONBEAT_SHORT_NAMES
#include <onbeat/job.h>
#include <onbeat/mdn.h>

#include <linux/filter.h>
#include <linux/ptrace.h>
#include <linux/seccomp.h>
#include <stddef.h>

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

static void the_calls_are_the_documented_ones(void)
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
			check(!memcmp(&call.entry.args[1], calls[seen], sizeof(calls[seen])));
			seen++;
		}
	}
	check(WIFEXITED(status) && !WEXITSTATUS(status));
	check(seen == CALLS + 1);
}

static volatile sig_atomic_t signals;

static void count(int number)
{
	(void)number;
	signals++;
}

static unsigned int action;

static void mark_under_the_filter(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_prctl, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ONBEAT_MARK, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, action),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(code) / sizeof(code[0]), code };

	signal(SIGCHLD, count);
	check(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	check(!prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0));
	for (int job = 0; job < 3; job++) {
		onbeat_job_begin();
		onbeat_job_end();
	}
	check(onbeat_marking_ == (action == SECCOMP_RET_ALLOW || action == (SECCOMP_RET_ERRNO | EPERM) ? 1 : 2));
	check(!signals && wait(NULL) < 0 && errno == ECHILD);
}

static void a_filter_that_kills_for_a_mark_silences_the_marks(void)
{
	static const unsigned int actions[] = { SECCOMP_RET_KILL_PROCESS, SECCOMP_RET_KILL_THREAD, SECCOMP_RET_TRAP,
						SECCOMP_RET_ERRNO | EPERM, SECCOMP_RET_ALLOW };

	for (size_t i = 0; i < sizeof(actions) / sizeof(actions[0]); i++) {
		action = actions[i];
		in_a_child(mark_under_the_filter);
	}
	onbeat_job_begin();
	check(onbeat_marking_ == 1);
}

int main(void)
{
	run_test(the_calls_are_the_documented_ones);
	run_test(a_filter_that_kills_for_a_mark_silences_the_marks);
	return 0;
}
