/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The cost of a mark to its thread in nanoseconds, beside getppid() and another prctl(), each by
 * the shortest of many batches. `bench-marks WHERE` names the run; `bench-marks WHERE filter` is
 * under a filter of system calls that allows all.
 */
#include <onbeat/mdn.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

enum { BATCHES = 2000, CALLS = 100 };

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static void measure(const char *what, const char *where, void (*volatile call)(void))
{
	int64_t best = INT64_MAX;

	for (int batch = 0; batch < BATCHES; batch++) {
		int64_t began = now_ns(), took;

		for (int i = 0; i < CALLS; i++)
			call();
		took = now_ns() - began;
		if (took < best)
			best = took;
	}
	printf("%s, %s: %.1f ns\n", what, where, (double)best / CALLS);
}

static void ask_parent(void)
{
	syscall(SYS_getppid);
}

static void ask_dumpable(void)
{
	prctl(PR_GET_DUMPABLE, 0, 0, 0, 0);
}

int main(int argc, char **argv)
{
	struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	struct sock_fprog filter = { 1, &allow };
	const char *where = argc > 1 ? argv[1] : "unheard";

	if (argc > 2 && (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
			 prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0))) {
		perror("a filter");
		return 1;
	}
	measure("getppid()", where, ask_parent);
	measure("another prctl()", where, ask_dumpable);
	measure("a mark", where, onbeat_mdn);
	return 0;
}
