/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A filter of system calls that a program was started with may kill for an unknown option of
 * prctl(): then nothing is marked, and the program does not notice. Under one that does not kill,
 * such as a container's, it marks.
 */
#include <onbeat/job.h>

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>

#include "check.h"

static volatile sig_atomic_t signals;

static void count(int number)
{
	(void)number;
	signals++;
}

static void filtered(unsigned int action, int marks)
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
	pid_t child = fork();
	int status;

	if (!child) {
		signal(SIGCHLD, count);
		check(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
		check(!prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0));
		for (int job = 0; job < 3; job++) {
			onbeat_job_begin();
			onbeat_job_end();
		}
		check(onbeat_marking_ == (marks ? 1 : 2));
		check(!signals && wait(NULL) < 0 && errno == ECHILD);
		_exit(0);
	}
	check(waitpid(child, &status, 0) == child);
	check(WIFEXITED(status) && !WEXITSTATUS(status));
}

int main(void)
{
	filtered(SECCOMP_RET_KILL_PROCESS, 0);
	filtered(SECCOMP_RET_KILL_THREAD, 0);
	filtered(SECCOMP_RET_TRAP, 0);
	filtered(SECCOMP_RET_ERRNO | EPERM, 1);
	filtered(SECCOMP_RET_ALLOW, 1);
	onbeat_job_begin();
	check(onbeat_marking_ == 1);
	return 0;
}
