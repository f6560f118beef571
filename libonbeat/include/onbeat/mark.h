/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The system call under <onbeat/job.h> and <onbeat/mdn.h>. The numbers do not change.
 */
#ifndef ONBEAT_MARK_H
#define ONBEAT_MARK_H

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* The option of prctl(2), "ONBT". */
#define ONBEAT_MARK 0x4f4e4254

enum {
	onbeat_begin_ = 1,
	onbeat_end_ = 2,
	onbeat_missed_ = 3,
	onbeat_start_ = 4, /* period_ns, permille */
	onbeat_exit_ = 5,
};

#ifndef ONBEAT_MARKS
#define ONBEAT_MARKS static inline
#endif

#ifdef __cplusplus
extern "C" {
#else
extern long syscall(long number, ...); /* <unistd.h> keeps it to itself in a strict dialect. */
#endif

/* One for all sources of a program. 0: not known yet; 1: this process may mark; 2: it may not. */
extern int onbeat_marking_;
__attribute__((weak, visibility("hidden"))) int onbeat_marking_;

/*
 * Whether a mark does this process no harm. A filter of system calls that it was started with may
 * kill it for an unknown option, and the kernel does not tell what a filter does: a child tries it.
 * It sends no signal when it ends, and only a wait with __WALL sees it.
 */
static __attribute__((noinline, unused)) int onbeat_find_out_(void)
{
	char status[4096];
	int file = open("/proc/self/status", O_RDONLY), marking = 2, ended = -1;
	ssize_t length = file < 0 ? 0 : read(file, status, sizeof(status) - 1);
	const char *filter;
	long child;

	if (file >= 0)
		close(file);
	else if (errno == EMFILE || errno == ENFILE)
		return 2; /* The next mark asks again. */
	status[length < 0 ? 0 : length] = 0;
	filter = strstr(status, "\nSeccomp:\t");
	if (filter ? filter[10] == '0' : strstr(status, "\nCpus_allowed:") != NULL) {
		marking = 1;
	} else if (filter && filter[10] == '2') {
		child = syscall(SYS_clone, 0, 0, 0, 0, 0);
		if (!child) {
			prctl(ONBEAT_MARK, 0UL, 0UL, 0UL, 0UL);
			_exit(0);
		}
		while (child > 0 && waitpid((pid_t)child, &ended, __WALL) < 0 && errno == EINTR)
			;
		marking = ended ? 2 : 1;
	}
	__atomic_store_n(&onbeat_marking_, marking, __ATOMIC_RELAXED);
	return marking;
}

static inline void onbeat_mark_(unsigned long kind, int64_t period_ns, int permille)
{
	int error = errno, marking = __atomic_load_n(&onbeat_marking_, __ATOMIC_RELAXED);

	if (!marking)
		marking = onbeat_find_out_();
	if (marking == 1)
		prctl(ONBEAT_MARK, kind, (unsigned long)period_ns, (unsigned long)permille, 0UL);
	errno = error;
}

#ifdef __cplusplus
}
#endif

#endif
