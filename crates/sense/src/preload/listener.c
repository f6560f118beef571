/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The preloaded library: wraps the calls of libc in which a thread can wait, and tells onbeat of
 * each that did.
 *
 * LFS++, section 6.2: dynamic linking can intercept the calls, without privilege and without
 * stopping the program. A call that returns at once costs two readings of the clock. After a longer
 * one, the kernel's count of the thread's voluntary switches says whether it blocked; and if it
 * did, the scheduler's account says for how long the thread was ready before it could return: on a
 * busy machine that is what tells a wakeup's time from the call's end.
 *
 * Nothing here allocates, locks or changes errno: a wrapped call may come from a signal handler.
 */
#include "ring.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

/* No thread blocks and runs again in less. */
#define SHORTEST_BLOCK_NS 3000u

/* The CPU time that this thread had used when its burst began. */
struct burst {
	uint32_t tid;
	uint32_t waited_us;
	uint64_t woke_ns;
	/* When it got a CPU, and the call returned. */
	uint64_t ran_ns;
	uint64_t executed_ns;
	/* All waiting for a CPU of this thread up to then. */
	uint64_t waited_ns;
	uint64_t blocks;
	uint64_t preempted;
};

static _Thread_local struct burst burst __attribute__((tls_model("initial-exec")));
static struct ring *ring;

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static uint64_t timeval_ns(struct timeval time)
{
	return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_usec * 1000u;
}

/*
 * How long this thread has waited for a CPU: the second number of its account. 0 if that cannot be
 * read.
 */
static uint64_t waited_ns(void)
{
	char text[96];
	long file =
		syscall(SYS_openat, AT_FDCWD, "/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);

	if (file < 0)
		return 0;
	long length = syscall(SYS_read, file, text, sizeof(text) - 1);

	syscall(SYS_close, file);
	text[length < 0 ? 0 : length] = '\0';
	const char *digit = strchr(text, ' ');
	uint64_t waited = 0;

	while (digit && *++digit >= '0' && *digit <= '9')
		waited = waited * 10 + (uint64_t)(*digit - '0');
	return waited;
}

/*
 * The next burst begins. The kernel's account is that of the thread's last switch, so it stands at
 * the wakeup.
 */
static struct burst begin(uint64_t ran_ns)
{
	struct rusage used = { 0 };

	getrusage(RUSAGE_THREAD, &used);
	return (struct burst){
		.tid = (uint32_t)syscall(SYS_gettid),
		.woke_ns = ran_ns,
		.ran_ns = ran_ns,
		.executed_ns = timeval_ns(used.ru_utime) + timeval_ns(used.ru_stime),
		.blocks = (uint64_t)used.ru_nvcsw,
		.preempted = (uint64_t)used.ru_nivcsw,
	};
}

/*
 * The waiting since the burst began that did not fall into the burst fell into the call that ended
 * it: then the next one was ready that much before it ran. The call was made at blocked_ns.
 */
static void reckon(struct burst *next, uint64_t blocked_ns)
{
	uint64_t lasted_ns = blocked_ns - burst.ran_ns;
	uint64_t executed_ns = next->executed_ns - burst.executed_ns;
	uint64_t within_ns = lasted_ns > executed_ns ? lasted_ns - executed_ns : 0;

	next->waited_ns = waited_ns();
	uint64_t in_all_ns =
		next->waited_ns > burst.waited_ns ? next->waited_ns - burst.waited_ns : 0;
	uint64_t ready_ns = in_all_ns > within_ns ? in_all_ns - within_ns : 0;
	uint64_t most_ns = next->ran_ns - blocked_ns;

	if (ready_ns > most_ns)
		ready_ns = most_ns;
	next->woke_ns = next->ran_ns - ready_ns;
	next->waited_us = (uint32_t)(ready_ns / 1000);
}

static void tell(const struct burst *next, uint64_t blocked_ns)
{
	uint64_t begun = atomic_fetch_add_explicit(&ring->begun, 1, memory_order_relaxed);
	struct record *record = &ring->records[begun % RING_RECORDS];

	atomic_store_explicit(&record->number, 0, memory_order_relaxed);
	atomic_thread_fence(memory_order_release);
	record->pid = (uint32_t)getpid();
	record->tid = burst.tid;
	record->woke_ns = burst.woke_ns;
	record->blocked_ns = blocked_ns;
	record->executed_ns = next->executed_ns - burst.executed_ns;
	record->preempted = (uint32_t)(next->preempted - burst.preempted);
	record->waited_us = burst.waited_us;
	prctl(PR_GET_NAME, record->comm);
	atomic_store_explicit(&record->number, begun + 1, memory_order_release);
}

/* A call that may block is about to be made. */
static uint64_t before(void)
{
	if (!ring)
		return 0;
	uint64_t at_ns = now_ns();

	if (!burst.tid) {
		burst = begin(at_ns);
		burst.waited_ns = waited_ns();
	}
	return at_ns;
}

/* It has returned. */
static void after(uint64_t called_ns)
{
	if (!called_ns)
		return;
	uint64_t at_ns = now_ns();

	if (at_ns - called_ns < SHORTEST_BLOCK_NS)
		return;
	int error = errno;
	struct burst next = begin(at_ns);

	if (next.tid != burst.tid) {
		/* The child of a vfork() has its parent's memory, but an account of its own. */
		next.waited_ns = waited_ns();
		burst = next;
	} else if (next.blocks != burst.blocks) {
		reckon(&next, called_ns);
		tell(&next, called_ns);
		burst = next;
	}
	errno = error;
}

/* The function that the program would have called without us. */
#define FIND(name)                                                                  \
	do {                                                                        \
		if (!real_##name)                                                   \
			real_##name = (typeof(real_##name))dlsym(RTLD_NEXT, #name); \
	} while (0)

#define WRAP(type, name, parameters, arguments)      \
	static type(*real_##name) parameters;        \
	type name parameters                         \
	{                                            \
		FIND(name);                          \
		uint64_t called_ns = before();       \
		type result = real_##name arguments; \
		after(called_ns);                    \
		return result;                       \
	}

typedef struct timespec timespec;

WRAP(int, nanosleep, (const timespec *a, timespec *b), (a, b))
WRAP(int, clock_nanosleep, (clockid_t a, int b, const timespec *c, timespec *d), (a, b, c, d))
WRAP(int, usleep, (useconds_t a), (a))
WRAP(unsigned, sleep, (unsigned a), (a))
WRAP(int, thrd_sleep, (const timespec *a, timespec *b), (a, b))
WRAP(int, pause, (void), ())
WRAP(int, poll, (struct pollfd * a, nfds_t b, int c), (a, b, c))
WRAP(int, ppoll, (struct pollfd * a, nfds_t b, const timespec *c, const sigset_t *d), (a, b, c, d))
WRAP(int, select, (int a, fd_set *b, fd_set *c, fd_set *d, struct timeval *e), (a, b, c, d, e))
WRAP(int, pselect, (int a, fd_set *b, fd_set *c, fd_set *d, const timespec *e, const sigset_t *f),
     (a, b, c, d, e, f))
WRAP(int, epoll_wait, (int a, struct epoll_event *b, int c, int d), (a, b, c, d))
WRAP(int, epoll_pwait, (int a, struct epoll_event *b, int c, int d, const sigset_t *e),
     (a, b, c, d, e))
WRAP(ssize_t, read, (int a, void *b, size_t c), (a, b, c))
WRAP(ssize_t, readv, (int a, const struct iovec *b, int c), (a, b, c))
WRAP(ssize_t, write, (int a, const void *b, size_t c), (a, b, c))
WRAP(ssize_t, writev, (int a, const struct iovec *b, int c), (a, b, c))
WRAP(ssize_t, recv, (int a, void *b, size_t c, int d), (a, b, c, d))
WRAP(ssize_t, recvfrom, (int a, void *b, size_t c, int d, struct sockaddr *e, socklen_t *f),
     (a, b, c, d, e, f))
WRAP(ssize_t, recvmsg, (int a, struct msghdr *b, int c), (a, b, c))
WRAP(ssize_t, send, (int a, const void *b, size_t c, int d), (a, b, c, d))
WRAP(ssize_t, sendto,
     (int a, const void *b, size_t c, int d, const struct sockaddr *e, socklen_t f),
     (a, b, c, d, e, f))
WRAP(ssize_t, sendmsg, (int a, const struct msghdr *b, int c), (a, b, c))
WRAP(int, accept, (int a, struct sockaddr *b, socklen_t *c), (a, b, c))
WRAP(int, accept4, (int a, struct sockaddr *b, socklen_t *c, int d), (a, b, c, d))
WRAP(int, connect, (int a, const struct sockaddr *b, socklen_t c), (a, b, c))
WRAP(int, sigwait, (const sigset_t *a, int *b), (a, b))
WRAP(int, sigwaitinfo, (const sigset_t *a, siginfo_t *b), (a, b))
WRAP(int, sigtimedwait, (const sigset_t *a, siginfo_t *b, const timespec *c), (a, b, c))
WRAP(int, sigsuspend, (const sigset_t *a), (a))
WRAP(pid_t, wait, (int *a), (a))
WRAP(pid_t, waitpid, (pid_t a, int *b, int c), (a, b, c))
WRAP(int, waitid, (idtype_t a, id_t b, siginfo_t *c, int d), (a, b, c, d))
WRAP(pid_t, wait4, (pid_t a, int *b, int c, struct rusage *d), (a, b, c, d))
WRAP(int, sem_wait, (sem_t * a), (a))
WRAP(int, sem_timedwait, (sem_t * a, const timespec *b), (a, b))
WRAP(int, pthread_cond_wait, (pthread_cond_t * a, pthread_mutex_t *b), (a, b))
WRAP(int, pthread_cond_timedwait, (pthread_cond_t * a, pthread_mutex_t *b, const timespec *c),
     (a, b, c))
WRAP(int, pthread_cond_clockwait,
     (pthread_cond_t * a, pthread_mutex_t *b, clockid_t c, const timespec *d), (a, b, c, d))
WRAP(int, pthread_barrier_wait, (pthread_barrier_t * a), (a))
WRAP(int, pthread_join, (pthread_t a, void **b), (a, b))
WRAP(int, cnd_wait, (cnd_t * a, mtx_t *b), (a, b))
WRAP(int, cnd_timedwait, (cnd_t * a, mtx_t *b, const timespec *c), (a, b, c))

static int (*real_ioctl)(int, unsigned long, ...);
int ioctl(int file, unsigned long request, ...)
{
	va_list rest;

	va_start(rest, request);
	void *argument = va_arg(rest, void *);

	va_end(rest);
	FIND(ioctl);
	uint64_t called_ns = before();
	int result = real_ioctl(file, request, argument);

	after(called_ns);
	return result;
}

/* A child's first thread is another, and begins anew. */
static void forked(void)
{
	burst.tid = 0;
}

/*
 * The memory at path: NULL unless it is what onbeat makes, sealed memory of this user. The path is
 * in the folder of a process that may be gone, and its number another user's, who would have us
 * write where he may not: so it is looked at before it is opened, as opening a device is already a
 * deed.
 */
static struct ring *ring_at(const char *path)
{
	void *memory = MAP_FAILED;
	const int fixed_size = F_SEAL_SHRINK | F_SEAL_GROW;
	int found = open(path, O_PATH | O_CLOEXEC);
	struct stat facts;
	char again[32];

	if (found < 0)
		return NULL;
	if (fstat(found, &facts) == 0 && S_ISREG(facts.st_mode) && facts.st_uid == geteuid() &&
	    facts.st_size == (off_t)sizeof(struct ring)) {
		snprintf(again, sizeof(again), "/proc/self/fd/%d", found);
		int file = open(again, O_RDWR | O_CLOEXEC);

		int seals = file >= 0 ? fcntl(file, F_GET_SEALS) : -1;

		// A kernel that has memory not executed by default adds a seal of its own.
		if (seals >= 0 && (seals & fixed_size) == fixed_size)
			memory = mmap(NULL, sizeof(struct ring), PROT_READ | PROT_WRITE, MAP_SHARED,
				      file, 0);
		if (file >= 0)
			close(file);
	}
	close(found);
	return memory == MAP_FAILED ? NULL : memory;
}

/* dlsym() is not for signal handlers: what they are likely to call is looked up before. */
__attribute__((constructor)) static void open_ring(void)
{
	const char *path = getenv("ONBEAT_RING");

	FIND(read);
	FIND(write);
	FIND(poll);
	FIND(select);
	FIND(nanosleep);
	FIND(clock_nanosleep);
	FIND(sigsuspend);
	FIND(waitpid);
	ring = path ? ring_at(path) : NULL;
	if (ring)
		pthread_atfork(NULL, NULL, forked);
}
