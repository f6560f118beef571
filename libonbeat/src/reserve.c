/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Reservations through SCHED_DEADLINE, for threads of the own process and for whole processes.
 *
 * Threads keep their reset-on-fork flag set while attached, because the kernel refuses fork and
 * clone to a SCHED_DEADLINE thread without it.
 */
#include <onbeat/reserve.h>

#include "reservation.h"

#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* As RealtimeKit grants them where nobody has configured it. */
#define AUDIO_PRIORITY 10
#define RTTIME_US 200000
#define IS_OF_KERNEL 0x00200000 /* PF_KTHREAD in /proc/PID/stat */

struct member {
	struct onbeat_guarded guarded;
	pid_t process;   /* it was attached with this whole process; 0: by itself */
	bool by_service; /* which then puts it back, too */
	int64_t consumed_at_attach_ns;
	struct member *next;
};

struct onbeat_reservation {
	pid_t process; /* whose threads are attached */
	int64_t runtime_ns;
	int64_t deadline_ns;
	int64_t period_ns;
	int64_t consumed_ns; /* by threads that are no longer attached */
	uint32_t account;    /* the number that the service knows it by, if it is shared; or 0 */
	bool is_hard;
	pid_t prioritised; /* the thread that has RealtimeKit's priority instead; or 0 */
	struct member *members;
};

/* A forked child has a copy of the reservation, and none of the threads: they are its parent's. */
static int check(struct onbeat_reservation *reservation)
{
	if (!reservation)
		return onbeat_refuse_(-EINVAL, "there is no reservation: see what create returned");
	if (reservation->process == getpid())
		return 0;
	while (reservation->members) {
		struct member *member = reservation->members;

		reservation->members = member->next;
		free(member);
	}
	reservation->process = getpid();
	reservation->consumed_ns = 0;
	return 0;
}

static int check_times(int64_t runtime_ns, int64_t deadline_ns, int64_t period_ns)
{
	if (runtime_ns > 0 && runtime_ns <= deadline_ns && deadline_ns <= period_ns)
		return 0;
	return onbeat_refuse_(
		-EINVAL,
		"0 < runtime (%lld ns) <= deadline (%lld ns) <= period (%lld ns) does not hold",
		(long long)runtime_ns, (long long)deadline_ns, (long long)period_ns);
}

/* Has the service make or change the account, and a thread or a process join it, if any. */
static int share(const struct onbeat_reservation *reservation, pid_t tid, pid_t process)
{
	struct onbeat_answer answer;

	onbeat_ask_(&answer, "Share", ONBEAT_UTT, reservation->account,
		    (uint64_t)reservation->runtime_ns, (uint64_t)reservation->period_ns, 0);
	if (!answer.error && tid)
		onbeat_ask_(&answer, "Join", ONBEAT_UUB, (uint32_t)tid, reservation->account,
			    process == tid, 0);
	return onbeat_explain_answer_(0, &answer);
}

/* Kernels before 4.13 do not reclaim: there each reservation is a ceiling. */
static int put_in_force(const struct onbeat_reservation *reservation, const struct member *member)
{
	struct onbeat_attributes wanted = {
		.size = sizeof(wanted),
		.policy = ONBEAT_POLICY_DEADLINE,
		.flags = ONBEAT_RESET_ON_FORK | (reservation->is_hard ? 0 : ONBEAT_RECLAIM),
		.runtime_ns = (uint64_t)reservation->runtime_ns,
		.deadline_ns = (uint64_t)reservation->deadline_ns,
		.period_ns = (uint64_t)reservation->period_ns,
	};
	pid_t tid = member->guarded.tid;
	struct onbeat_answer answer;
	int error;

	if (reservation->account)
		return share(reservation, tid, member->process);
	if (member->by_service) {
		onbeat_ask_(&answer, "Reserve", ONBEAT_UTTT, (uint32_t)tid, wanted.runtime_ns,
			    wanted.deadline_ns, wanted.period_ns);
		return onbeat_explain_answer_(tid, &answer);
	}
	error = onbeat_scheduler_->set(tid, &wanted);
	if (error == -EINVAL && !reservation->is_hard) {
		wanted.flags = ONBEAT_RESET_ON_FORK;
		error = onbeat_scheduler_->set(tid, &wanted);
	}
	return error ? onbeat_explain_(error, tid, &wanted) : 0;
}

/* The thread's CPU time. One in another process has a file for it, which is a tick behind. */
static int64_t consumed(pid_t tid)
{
	clockid_t clock = (clockid_t)((~(unsigned)tid << 3) | 6);
	struct timespec time;
	char path[64];

	if (clock_gettime(clock, &time) == 0)
		return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
	snprintf(path, sizeof(path), "/proc/%d/schedstat", tid);
	return onbeat_read_(path, "%lld", 0);
}

static int64_t consumed_since_attach(const struct member *member)
{
	int64_t used_ns = consumed(member->guarded.tid) - member->consumed_at_attach_ns;

	return used_ns > 0 ? used_ns : 0;
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

	*reservation = NULL;
	if (error)
		return error;
	made = calloc(1, sizeof(*made));
	if (!made)
		return onbeat_refuse_(-ENOMEM, "no memory for a reservation");
	made->process = getpid();
	made->runtime_ns = runtime_ns;
	made->deadline_ns = deadline_ns;
	made->period_ns = period_ns;
	*reservation = made;
	return 0;
}

static bool belongs(pid_t tid, pid_t process)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task/%d", process, tid);
	return access(path, F_OK) == 0;
}

/* Whether every program depends on `process`: it is the kernel's, or init. */
static bool is_off_limits(pid_t process)
{
	char path[64], namespace[32] = "";
	long long flags;

	snprintf(path, sizeof(path), "/proc/%d/stat", process);
	/* No thread of the kernel has a bracket in its name. */
	flags = onbeat_read_(path, "%*d (%*[^)]) %*c %*d %*d %*d %*d %*d %lld", 0);
	/* In a container's own namespace, process 1 is an ordinary program. */
	return flags & IS_OF_KERNEL ||
	       (process == 1 && readlink("/proc/self/ns/pid", namespace, sizeof(namespace)) > 0 &&
		strncmp(namespace, "pid:[4026531836]", 16) == 0);
}

static int put_under_guard(const struct onbeat_guarded *guarded)
{
	int error = onbeat_guard_(guarded);

	if (!error)
		return 0;
	return onbeat_refuse_(
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
		return onbeat_refuse_(-EALREADY, "thread %d is attached already", tid);
	if (!belongs(tid, process ? process : getpid()))
		return onbeat_explain_(-ESRCH, tid, NULL);
	member = calloc(1, sizeof(*member));
	if (!member)
		return onbeat_refuse_(-ENOMEM, "no memory to attach thread %d", tid);
	member->guarded.tid = tid;
	member->guarded.started = onbeat_started_(tid);
	member->process = process;
	member->consumed_at_attach_ns = consumed(tid);
	error = reservation->account ? 0 : onbeat_scheduler_->get(tid, &member->guarded.before);
	if (error)
		error = onbeat_explain_(error, tid, NULL);
	else if (process && process != getpid() && !reservation->account)
		error = put_under_guard(&member->guarded);
	if (!error)
		error = put_in_force(reservation, member);
	if (error == -EPERM && !reservation->account) {
		onbeat_unguard_(&member->guarded);
		member->by_service = true;
		error = put_in_force(reservation, member);
		if (error == -ETIMEDOUT)
			onbeat_withdraw_(tid);
	}
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
	const bool by_service = member->by_service;
	struct onbeat_answer answer;
	int error;

	reservation->consumed_ns += consumed_since_attach(member);
	*place = member->next;
	free(member);
	if (reservation->account || by_service) {
		onbeat_ask_(&answer, reservation->account ? "Untrack" : "Release", ONBEAT_U,
			    (uint32_t)guarded.tid, 0, 0, 0);
		/* One that was started anew, or lost this connection, has put everything back. */
		if (answer.error == -ENOENT || answer.error == -ENOTCONN)
			return 0;
		return onbeat_explain_answer_(guarded.tid, &answer);
	}
	error = onbeat_put_back_(&guarded, (uint64_t)reservation->period_ns);
	onbeat_unguard_(&guarded);
	return error ? onbeat_explain_(error, guarded.tid, &guarded.before) : 0;
}

int onbeat_reservation_share(struct onbeat_reservation *reservation)
{
	static uint32_t accounts;
	int error = check(reservation);

	if (error)
		return error;
	if (reservation->members)
		return onbeat_refuse_(-EBUSY, "threads are attached: share it before");
	reservation->account = __atomic_add_fetch(&accounts, 1, __ATOMIC_RELAXED);
	error = share(reservation, 0, 0);
	if (error)
		reservation->account = 0;
	return error;
}

/* A service that was started anew has no account before something is attached. */
static int balance(const struct onbeat_reservation *reservation, struct onbeat_answer *now)
{
	now->consumed_ns = 0;
	now->remaining_ns = (uint64_t)reservation->runtime_ns;
	onbeat_ask_(now, "Balance", ONBEAT_BALANCE, reservation->account, 0, 0, 0);
	return now->error == -ENOENT ? 0 : onbeat_explain_answer_(0, now);
}

int onbeat_reservation_remaining(struct onbeat_reservation *reservation, int64_t *remaining_ns)
{
	struct onbeat_answer now;
	int error = check(reservation);

	if (!error && !reservation->account)
		error = onbeat_refuse_(-EINVAL, "the reservation is not a shared one");
	if (!error)
		error = balance(reservation, &now);
	if (!error)
		*remaining_ns = (int64_t)now.remaining_ns;
	return error;
}

int onbeat_reservation_attach(struct onbeat_reservation *reservation, pid_t tid)
{
	int error = check(reservation);

	return error ? error : attach(reservation, resolve(tid), 0);
}

/* RealtimeKit gives nothing to a process that may compute for longer without a pause. */
static int prioritise(struct onbeat_reservation *reservation)
{
	struct onbeat_answer answer;
	struct rlimit limit;

	getrlimit(RLIMIT_RTTIME, &limit);
	limit.rlim_cur = limit.rlim_cur < RTTIME_US ? limit.rlim_cur : RTTIME_US;
	limit.rlim_max = limit.rlim_max < RTTIME_US ? limit.rlim_max : RTTIME_US;
	setrlimit(RLIMIT_RTTIME, &limit);
	onbeat_ask_(&answer, "MakeThreadRealtime", ONBEAT_KIT_TU, (uint32_t)resolve(0),
		    AUDIO_PRIORITY, 0, 0);
	if (!answer.error)
		reservation->prioritised = resolve(0);
	return answer.error;
}

int onbeat_keep_audio_thread(struct onbeat_reservation **reservation, uint32_t frames,
			     uint32_t rate_hz, int64_t budget_ns)
{
	int64_t period_ns = rate_hz ? (int64_t)frames * 1000000000 / rate_hz : 0;
	int error = onbeat_reservation_create(reservation, budget_ns, period_ns, period_ns);

	if (error)
		return error;
	error = attach(*reservation, resolve(0), 0);
	if (!error)
		return 0;
	if (!prioritise(*reservation))
		return 1;
	onbeat_reservation_destroy(*reservation);
	*reservation = NULL;
	return error;
}

int onbeat_reservation_detach(struct onbeat_reservation *reservation, pid_t tid)
{
	int error = check(reservation);
	struct member **place;

	if (error)
		return error;
	tid = resolve(tid);
	place = find(reservation, tid);
	if (!*place)
		return onbeat_refuse_(-ENOENT, "thread %d is not attached", tid);
	return detach(reservation, place);
}

/* Gives their number. */
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
	char why[ONBEAT_REASON_ROOM];
	int error = check(reservation);
	DIR *tasks;

	if (error)
		return error;
	process = process ? process : getpid();
	if (process != getpid() && is_off_limits(process))
		return onbeat_refuse_(-EPERM,
				      "process %d is init or a thread of the kernel, on which "
				      "every program depends",
				      process);
	if (reservation->account)
		return attach(reservation, process, process);
	snprintf(path, sizeof(path), "/proc/%d/task", process);
	tasks = opendir(path);
	if (!tasks)
		return onbeat_refuse_(-ESRCH, "there is no process %d", process);
	while (!error && (entry = readdir(tasks))) {
		pid_t tid = (pid_t)strtol(entry->d_name, NULL, 10);

		/* One that is attached by itself stays so; one that has ended needs nothing. */
		if (tid > 0 && !*find(reservation, tid))
			error = attach(reservation, tid, process);
		if (error == -ESRCH)
			error = 0;
	}
	closedir(tasks);
	if (!error)
		return 0;
	snprintf(why, sizeof(why), "%s", onbeat_reservation_reason());
	detach_all(reservation, process);
	onbeat_set_reason_(why);
	return error;
}

int onbeat_reservation_detach_process(struct onbeat_reservation *reservation, pid_t process)
{
	int error = check(reservation);

	process = process ? process : getpid();
	if (!error && detach_all(reservation, process) == 0)
		error = onbeat_refuse_(-ENOENT, "process %d is not attached", process);
	return error;
}

static int put_all_in_force(const struct onbeat_reservation *reservation)
{
	int error = reservation->account ? share(reservation, 0, 0) : 0;

	for (const struct member *member = reservation->members; member && !error;
	     member = member->next) {
		error = put_in_force(reservation, member);
		/* One that has ended needs nothing any more. */
		if (error == -ESRCH)
			error = 0;
	}
	return error;
}

int onbeat_reservation_set_hard(struct onbeat_reservation *reservation, int hard)
{
	int error = check(reservation);

	if (error)
		return error;
	reservation->is_hard = hard != 0;
	return put_all_in_force(reservation);
}

int onbeat_reservation_change(struct onbeat_reservation *reservation, int64_t runtime_ns,
			      int64_t deadline_ns, int64_t period_ns)
{
	struct onbeat_reservation before;
	char why[ONBEAT_REASON_ROOM];
	int error = check(reservation);

	if (!error)
		error = check_times(runtime_ns, deadline_ns, period_ns);
	if (error)
		return error;
	before = *reservation;
	reservation->runtime_ns = runtime_ns;
	reservation->deadline_ns = deadline_ns;
	reservation->period_ns = period_ns;
	error = put_all_in_force(reservation);
	if (!error)
		return 0;
	snprintf(why, sizeof(why), "%s", onbeat_reservation_reason());
	*reservation = before;
	for (struct member *member = reservation->members; member; member = member->next)
		put_in_force(reservation, member);
	onbeat_set_reason_(why);
	return error;
}

int onbeat_reservation_query(struct onbeat_reservation *reservation,
			     struct onbeat_reservation_state *state)
{
	int error = check(reservation);
	struct onbeat_answer now;

	if (error)
		return error;
	state->runtime_ns = reservation->runtime_ns;
	state->deadline_ns = reservation->deadline_ns;
	state->period_ns = reservation->period_ns;
	state->consumed_ns = reservation->consumed_ns;
	state->threads = 0;
	for (const struct member *member = reservation->members; member; member = member->next) {
		state->consumed_ns += consumed_since_attach(member);
		state->threads++;
	}
	if (!reservation->account)
		return 0;
	error = balance(reservation, &now);
	if (!error)
		state->consumed_ns = (int64_t)now.consumed_ns;
	return error;
}

void onbeat_reservation_destroy(struct onbeat_reservation *reservation)
{
	struct onbeat_answer answer;

	if (!reservation || check(reservation))
		return;
	while (reservation->members)
		detach(reservation, &reservation->members);
	/* Without the flag that RealtimeKit has set, the kernel would refuse that. */
	if (reservation->prioritised)
		sched_setscheduler(reservation->prioritised, SCHED_OTHER | SCHED_RESET_ON_FORK,
				   &(struct sched_param){ 0 });
	if (reservation->account)
		onbeat_ask_(&answer, "Share", ONBEAT_UTT, reservation->account, 0, 0, 0);
	free(reservation);
}
