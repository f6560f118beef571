/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A process that puts back what its parent attached in other processes, once the parent is gone.
 *
 * A reservation of the process's own thread ends with the process. A thread of another one would
 * keep its reservation if the process that gave it were killed. So the first such attach starts a
 * guard: it reads from a socket what was attached and what it had before, and when the parent ends,
 * by whatever signal, or execs, it puts all of that back and ends. Only if both are killed is
 * nothing put back.
 *
 * The guard is made by a bare clone without a signal to the parent: a program that waits for its
 * children never sees it, and no fork handler runs. Between that and its end it calls what is
 * async-signal-safe, for the parent may have had threads that held locks.
 */
#include "reservation.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SHORTEST_RUNTIME_NS 1024
#define FIRST_ROOM 64

static int get(pid_t tid, struct onbeat_attributes *attributes)
{
	return syscall(SYS_sched_getattr, tid, attributes, sizeof(*attributes), 0) ? -errno : 0;
}

static int set(pid_t tid, const struct onbeat_attributes *attributes)
{
	return syscall(SYS_sched_setattr, tid, attributes, 0) ? -errno : 0;
}

static const struct onbeat_scheduler kernel = { get, set };

const struct onbeat_scheduler *onbeat_scheduler_ = &kernel;

struct message {
	bool attached;
	struct onbeat_guarded guarded;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t handles_forks = PTHREAD_ONCE_INIT;
static int fork_error;
/* The signals that the forking thread, which has the lock, had blocked before. */
static sigset_t forker_signals;
static int to_guard = -1;
static pid_t guarded_process;

/* "/proc/TID/stat" without a library call. */
static void stat_path(char *path, pid_t tid)
{
	char digits[12];
	int count = 0;

	memcpy(path, "/proc/", 6);
	path += 6;
	do {
		digits[count++] = (char)('0' + tid % 10);
		tid /= 10;
	} while (tid);
	while (count)
		*path++ = digits[--count];
	memcpy(path, "/stat", 6);
}

uint64_t onbeat_started_(pid_t tid)
{
	char path[32], text[1024];
	const char *at;
	uint64_t started = 0;
	ssize_t length;
	int fd;

	stat_path(path, tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	length = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (length <= 0)
		return 0;
	text[length] = 0;
	/* The second figure is a name in parentheses, which may hold anything. */
	at = strrchr(text, ')');
	for (int figure = 2; at && figure < 22; figure++)
		at = strchr(at + 1, ' ');
	for (at = at ? at + 1 : ""; *at >= '0' && *at <= '9'; at++)
		started = started * 10 + (uint64_t)(*at - '0');
	return started;
}

/*
 * A thread that stops being SCHED_DEADLINE while it sleeps may keep its bandwidth in the kernel's
 * account (seen on 6.18): so it leaves with next to nothing.
 */
static void shrink(pid_t tid, uint64_t period_ns)
{
	struct onbeat_attributes least = {
		.size = sizeof(least),
		.policy = ONBEAT_POLICY_DEADLINE,
		.flags = ONBEAT_RESET_ON_FORK,
		.runtime_ns = SHORTEST_RUNTIME_NS,
		.deadline_ns = period_ns,
		.period_ns = period_ns,
	};

	onbeat_scheduler_->set(tid, &least);
}

int onbeat_put_back_(const struct onbeat_guarded *guarded, uint64_t period_ns)
{
	struct onbeat_attributes now;
	int error;

	if (guarded->started != onbeat_started_(guarded->tid))
		return -ESRCH;
	error = onbeat_scheduler_->get(guarded->tid, &now);
	/* If the reservation was taken away meanwhile, that stays. */
	if (error || now.policy != ONBEAT_POLICY_DEADLINE)
		return error;
	/* Back to a reservation that it had before, it may be refused. */
	if (guarded->before.policy != ONBEAT_POLICY_DEADLINE &&
	    guarded->tid != (pid_t)syscall(SYS_gettid))
		shrink(guarded->tid, period_ns ? period_ns : now.period_ns);
	return onbeat_scheduler_->set(guarded->tid, &guarded->before);
}

/* The guard's threads. The memory is the kernel's: malloc may have been locked at its clone. */
struct table {
	struct onbeat_guarded *threads;
	size_t count, room;
};

static int grow(struct table *table)
{
	size_t size = table->room * sizeof(*table->threads);
	size_t larger = size ? 2 * size : FIRST_ROOM * sizeof(*table->threads);
	void *at;

	if (table->count < table->room)
		return 0;
	at = size ? mremap(table->threads, size, larger, MREMAP_MAYMOVE)
		  : mmap(NULL, larger, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (at == MAP_FAILED)
		return -errno;
	table->threads = at;
	table->room = larger / sizeof(*table->threads);
	return 0;
}

/* A number is of one thread at a time: what is known of an earlier one of this number is over. */
static int note(struct table *table, const struct message *message)
{
	int error;

	for (size_t i = 0; i < table->count; i++) {
		if (table->threads[i].tid == message->guarded.tid) {
			table->threads[i] = table->threads[--table->count];
			break;
		}
	}
	if (!message->attached)
		return 0;
	error = grow(table);
	if (!error)
		table->threads[table->count++] = message->guarded;
	return error;
}

static void guard(int from, int parent)
{
	struct pollfd watched[] = { { from, POLLIN, 0 }, { parent, POLLIN, 0 } };
	struct table table = { 0 };
	struct message message;
	int error;

	for (;;) {
		if (poll(watched, 2, -1) < 0)
			continue;
		/* Messages sent before the parent ended come first. */
		if (watched[0].revents & POLLIN &&
		    read(from, &message, sizeof(message)) == sizeof(message)) {
			error = note(&table, &message);
			send(from, &error, sizeof(error), MSG_NOSIGNAL);
		} else if (watched[0].revents || watched[1].revents) {
			break;
		}
	}
	while (table.count)
		onbeat_put_back_(&table.threads[--table.count], 0);
	_exit(0);
}

/* In the guard: nothing of the program's stays open, and no signal but SIGKILL ends it. */
static void become_guard(int from, int parent)
{
	sigset_t all;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	setsid();
	prctl(PR_SET_NAME, "onbeat-guard");
	/* Both out of the way first: either may be 0 or 1. */
	from = fcntl(from, F_DUPFD, 2);
	parent = fcntl(parent, F_DUPFD, 2);
	if (dup2(from, 0) == 0 && dup2(parent, 1) == 1 && !syscall(SYS_close_range, 2, ~0U, 0))
		guard(0, 1);
	_exit(1);
}

/* Unless this process has one. */
static int start_guard(void)
{
	int ends[2], parent;
	pid_t child;
	int error;

	if (to_guard >= 0 && guarded_process == getpid())
		return 0;
	if (to_guard >= 0)
		close(to_guard);
	to_guard = -1;
	parent = (int)syscall(SYS_pidfd_open, getpid(), 0);
	if (parent < 0)
		return -errno;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends)) {
		error = -errno;
		close(parent);
		return error;
	}
	child = (pid_t)syscall(SYS_clone, 0, NULL, NULL, NULL, NULL);
	if (child == 0) {
		close(ends[1]);
		become_guard(ends[0], parent);
	}
	error = child < 0 ? -errno : 0;
	close(ends[0]);
	close(parent);
	if (error) {
		close(ends[1]);
		return error;
	}
	to_guard = ends[1];
	guarded_process = getpid();
	return 0;
}

/* Waits until the guard knows. */
static int tell(bool attached, const struct onbeat_guarded *guarded)
{
	struct message message = { attached, *guarded };
	ssize_t length;
	int error;

	if (send(to_guard, &message, sizeof(message), MSG_NOSIGNAL) != sizeof(message))
		return -errno;
	do
		length = recv(to_guard, &error, sizeof(error), 0);
	while (length < 0 && errno == EINTR);
	return length == sizeof(error) ? error : -EPIPE;
}

/*
 * No handler runs in a thread that has the lock: one that forks would wait for its own thread, and
 * one that jumps away, as that of a violation does, would leave the lock taken for good.
 */
static void block_signals(sigset_t *before)
{
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, before);
}

/* A fork waits until the guard has answered the thread that speaks to it. */
static void before_fork(void)
{
	sigset_t before;

	block_signals(&before);
	pthread_mutex_lock(&lock);
	forker_signals = before;
}

static void after_fork_in_parent(void)
{
	const sigset_t before = forker_signals;

	pthread_mutex_unlock(&lock);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* The thread that has the lock is this one's copy, which never had it. */
static void after_fork_in_child(void)
{
	pthread_mutex_init(&lock, NULL);
	pthread_sigmask(SIG_SETMASK, &forker_signals, NULL);
}

static void handle_forks(void)
{
	fork_error = pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

int onbeat_guard_(const struct onbeat_guarded *guarded)
{
	sigset_t before;
	int error;

	block_signals(&before);
	/* A child forked while another thread spoke to the guard would wait for that for ever. */
	pthread_once(&handles_forks, handle_forks);
	error = -fork_error;
	if (!error) {
		pthread_mutex_lock(&lock);
		error = start_guard();
		if (!error)
			error = tell(true, guarded);
		pthread_mutex_unlock(&lock);
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return error;
}

void onbeat_unguard_(const struct onbeat_guarded *guarded)
{
	sigset_t before;

	block_signals(&before);
	pthread_mutex_lock(&lock);
	if (to_guard >= 0 && guarded_process == getpid())
		tell(false, guarded);
	pthread_mutex_unlock(&lock);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}
