/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Reservations through SCHED_DEADLINE, for threads of the own process and for whole processes.
 *
 * Threads keep their reset-on-fork flag set while attached, because the kernel refuses fork and clone
 * to a SCHED_DEADLINE thread without it.
 */
#include <onbeat/reserve.h>

#include "guard.h"
#include "scheduler.h"

#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

struct member {
	struct onbeat_guarded guarded;
	pid_t process; /* it was attached with this whole process; 0: by itself */
	int64_t consumed_at_attach_ns;
	struct member *next;
};

struct onbeat_reservation {
	int64_t runtime_ns;
	int64_t deadline_ns;
	int64_t period_ns;
	int64_t consumed_ns; /* by threads that are no longer attached */
	struct member *members;
};

static _Thread_local char reason[256];

__attribute__((format(printf, 2, 3))) static int refuse(int error, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(reason, sizeof(reason), format, arguments);
	va_end(arguments);
	return error;
}

const char *onbeat_reservation_reason(void)
{
	return reason[0] ? reason : "no call of this thread has failed";
}

static int check_times(int64_t runtime_ns, int64_t deadline_ns, int64_t period_ns)
{
	if (runtime_ns > 0 && runtime_ns <= deadline_ns && deadline_ns <= period_ns)
		return 0;
	return refuse(
		-EINVAL,
		"0 < runtime (%lld ns) <= deadline (%lld ns) <= period (%lld ns) does not hold",
		(long long)runtime_ns, (long long)deadline_ns, (long long)period_ns);
}

static int may_run_everywhere(pid_t tid)
{
	cpu_set_t allowed;

	if (sched_getaffinity(tid, sizeof(allowed), &allowed))
		return 1;
	return CPU_COUNT(&allowed) >= sysconf(_SC_NPROCESSORS_ONLN);
}

/* Says why the kernel refused `tid` these attributes; NULL if none were asked for. */
static int explain(int error, pid_t tid, const struct onbeat_attributes *wanted)
{
	int available;

	switch (error) {
	case -EPERM:
		if (!may_run_everywhere(tid))
			return refuse(error,
				      "thread %d may not run on every CPU: give it all of them "
				      "(sched_setaffinity), or a cpuset partition of its own",
				      tid);
		return refuse(error,
			      "thread %d: SCHED_DEADLINE needs CAP_SYS_NICE: run as root, or give "
			      "the program that capability",
			      tid);
	case -EBUSY:
		if (onbeat_reservation_available(&available) == 0)
			return refuse(error,
				      "thread %d asks for %lld thousandths of a CPU, %d are free: "
				      "ask for "
				      "less, or end another reservation",
				      tid,
				      (long long)(wanted->runtime_ns * 1000 / wanted->period_ns),
				      available);
		return refuse(error, "thread %d: not as much bandwidth is free", tid);
	case -EINVAL:
		return refuse(error, "the kernel takes runtimes from 1024 ns and periods between "
				     "kernel.sched_deadline_period_min_us and _max_us");
	case -ESRCH:
		return refuse(error, "there is no thread %d, or not in the process that was meant",
			      tid);
	default:
		return refuse(error, "thread %d: %s", tid, strerror(-error));
	}
}

static int put_in_force(const struct onbeat_reservation *reservation, pid_t tid)
{
	struct onbeat_attributes wanted = {
		.size = sizeof(wanted),
		.policy = ONBEAT_POLICY_DEADLINE,
		.flags = ONBEAT_RESET_ON_FORK,
		.runtime_ns = (uint64_t)reservation->runtime_ns,
		.deadline_ns = (uint64_t)reservation->deadline_ns,
		.period_ns = (uint64_t)reservation->period_ns,
	};
	int error = onbeat_scheduler_->set(tid, &wanted);

	return error ? explain(error, tid, &wanted) : 0;
}

/*
 * The thread's CPU time. One in another process has no clock that can be read, but a file, which is a tick
 * behind.
 */
static int64_t consumed(pid_t tid)
{
	clockid_t clock = (clockid_t)((~(unsigned)tid << 3) | 6);
	long long executed_ns = 0;
	struct timespec time;
	char path[64];
	FILE *file;

	if (clock_gettime(clock, &time) == 0)
		return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
	snprintf(path, sizeof(path), "/proc/%d/schedstat", tid);
	file = fopen(path, "re");
	if (!file)
		return 0;
	if (fscanf(file, "%lld", &executed_ns) != 1)
		executed_ns = 0;
	fclose(file);
	return executed_ns;
}

static struct member **find(struct onbeat_reservation *reservation, pid_t tid)
{
	struct member **member = &reservation->members;

	while (*member && (*member)->guarded.tid != tid)
		member = &(*member)->next;
	return member;
}

static pid_t resolve(pid_t tid)
{
	return tid ? tid : (pid_t)syscall(SYS_gettid);
}

int onbeat_reservation_create(struct onbeat_reservation **reservation, int64_t runtime_ns,
			      int64_t deadline_ns, int64_t period_ns)
{
	int error = check_times(runtime_ns, deadline_ns, period_ns);
	struct onbeat_reservation *made;

	if (error)
		return error;
	made = calloc(1, sizeof(*made));
	if (!made)
		return refuse(-ENOMEM, "no memory for a reservation");
	made->runtime_ns = runtime_ns;
	made->deadline_ns = deadline_ns;
	made->period_ns = period_ns;
	*reservation = made;
	return 0;
}

/* Whether `tid` is a thread of `process`. */
static bool belongs(pid_t tid, pid_t process)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task/%d", process, tid);
	return access(path, F_OK) == 0;
}

static int put_under_guard(const struct onbeat_guarded *guarded)
{
	int error = onbeat_guard_(guarded);

	if (!error)
		return 0;
	return refuse(
		error,
		"the guard that would put thread %d back cannot be started or told: %s; raise "
		"RLIMIT_NOFILE or RLIMIT_NPROC, and have Linux 5.9 or newer",
		guarded->tid, strerror(-error));
}

static int attach(struct onbeat_reservation *reservation, pid_t tid, pid_t process)
{
	struct member *member;
	int error;

	if (*find(reservation, tid))
		return refuse(-EALREADY, "thread %d is attached already", tid);
	if (!belongs(tid, process ? process : getpid()))
		return explain(-ESRCH, tid, NULL);
	member = calloc(1, sizeof(*member));
	if (!member)
		return refuse(-ENOMEM, "no memory to attach thread %d", tid);
	member->guarded.tid = tid;
	member->guarded.started = onbeat_started_(tid);
	member->process = process;
	member->consumed_at_attach_ns = consumed(tid);
	error = onbeat_scheduler_->get(tid, &member->guarded.before);
	if (error)
		error = explain(error, tid, NULL);
	else if (process && process != getpid())
		error = put_under_guard(&member->guarded);
	if (!error)
		error = put_in_force(reservation, tid);
	if (error) {
		onbeat_unguard_(&member->guarded);
		free(member);
		return error;
	}
	member->next = reservation->members;
	reservation->members = member;
	return 0;
}

static int detach(struct onbeat_reservation *reservation, struct member **place)
{
	struct member *member = *place;
	const struct onbeat_guarded guarded = member->guarded;
	int64_t used_ns = consumed(guarded.tid) - member->consumed_at_attach_ns;
	int error;

	reservation->consumed_ns += used_ns > 0 ? used_ns : 0;
	*place = member->next;
	free(member);
	error = onbeat_put_back_(&guarded, (uint64_t)reservation->period_ns);
	onbeat_unguard_(&guarded);
	return error ? explain(error, guarded.tid, &guarded.before) : 0;
}

int onbeat_reservation_attach(struct onbeat_reservation *reservation, pid_t tid)
{
	return attach(reservation, resolve(tid), 0);
}

int onbeat_reservation_detach(struct onbeat_reservation *reservation, pid_t tid)
{
	struct member **place;

	tid = resolve(tid);
	place = find(reservation, tid);
	if (!*place)
		return refuse(-ENOENT, "thread %d is not attached", tid);
	return detach(reservation, place);
}

/* Detaches what was attached with `process`; how many threads that were. */
static int detach_all(struct onbeat_reservation *reservation, pid_t process)
{
	struct member **place = &reservation->members;
	int count = 0;

	while (*place) {
		if ((*place)->process == process) {
			detach(reservation, place);
			count++;
		} else {
			place = &(*place)->next;
		}
	}
	return count;
}

int onbeat_reservation_attach_process(struct onbeat_reservation *reservation, pid_t process)
{
	struct dirent *entry;
	char path[64];
	char why[sizeof(reason)];
	int error = 0;
	DIR *tasks;

	process = process ? process : getpid();
	snprintf(path, sizeof(path), "/proc/%d/task", process);
	tasks = opendir(path);
	if (!tasks)
		return refuse(-ESRCH, "there is no process %d", process);
	while (!error && (entry = readdir(tasks))) {
		pid_t tid = (pid_t)strtol(entry->d_name, NULL, 10);

		/* One that is attached by itself stays so; one that has ended meanwhile needs nothing. */
		if (tid > 0 && !*find(reservation, tid))
			error = attach(reservation, tid, process);
		if (error == -ESRCH)
			error = 0;
	}
	closedir(tasks);
	if (!error)
		return 0;
	memcpy(why, reason, sizeof(why));
	detach_all(reservation, process);
	memcpy(reason, why, sizeof(why));
	return error;
}

int onbeat_reservation_detach_process(struct onbeat_reservation *reservation, pid_t process)
{
	process = process ? process : getpid();
	if (detach_all(reservation, process) == 0)
		return refuse(-ENOENT, "process %d is not attached", process);
	return 0;
}

int onbeat_reservation_change(struct onbeat_reservation *reservation, int64_t runtime_ns,
			      int64_t deadline_ns, int64_t period_ns)
{
	struct onbeat_reservation before = *reservation;
	struct member *member;
	int error = check_times(runtime_ns, deadline_ns, period_ns);

	if (error)
		return error;
	reservation->runtime_ns = runtime_ns;
	reservation->deadline_ns = deadline_ns;
	reservation->period_ns = period_ns;
	for (member = reservation->members; member && !error; member = member->next) {
		error = put_in_force(reservation, member->guarded.tid);
		/* One that has ended needs nothing any more. */
		if (error == -ESRCH)
			error = 0;
	}
	if (!error)
		return 0;
	reservation->runtime_ns = before.runtime_ns;
	reservation->deadline_ns = before.deadline_ns;
	reservation->period_ns = before.period_ns;
	{
		char why[sizeof(reason)];

		memcpy(why, reason, sizeof(why));
		for (member = reservation->members; member; member = member->next)
			put_in_force(reservation, member->guarded.tid);
		memcpy(reason, why, sizeof(why));
	}
	return error;
}

int onbeat_reservation_query(struct onbeat_reservation *reservation,
			     struct onbeat_reservation_state *state)
{
	state->runtime_ns = reservation->runtime_ns;
	state->deadline_ns = reservation->deadline_ns;
	state->period_ns = reservation->period_ns;
	state->consumed_ns = reservation->consumed_ns;
	state->threads = 0;
	for (const struct member *member = reservation->members; member; member = member->next) {
		int64_t used_ns = consumed(member->guarded.tid) - member->consumed_at_attach_ns;

		state->consumed_ns += used_ns > 0 ? used_ns : 0;
		state->threads++;
	}
	return 0;
}

void onbeat_reservation_destroy(struct onbeat_reservation *reservation)
{
	if (!reservation)
		return;
	while (reservation->members)
		detach(reservation, &reservation->members);
	free(reservation);
}
