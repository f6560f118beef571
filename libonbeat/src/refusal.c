/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "reservation.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <onbeat/reserve.h>

/*
 * Each thread's reason is memory of its own. A thread-local array would take that much of the room
 * that libc keeps for libraries that are loaded late, of which there may not be enough.
 */
static pthread_key_t reasons;
static pthread_once_t reasons_made = PTHREAD_ONCE_INIT;
static bool no_reasons;

static void make_reasons(void)
{
	no_reasons = pthread_key_create(&reasons, free) != 0;
}

static char *reason(void)
{
	pthread_once(&reasons_made, make_reasons);
	return no_reasons ? NULL : pthread_getspecific(reasons);
}

int onbeat_refuse_(int error, const char *format, ...)
{
	char text[ONBEAT_REASON_ROOM];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	onbeat_set_reason_(text);
	return error;
}

void onbeat_set_reason_(const char *text)
{
	char *kept = reason();

	if (!kept && !no_reasons) {
		kept = malloc(ONBEAT_REASON_ROOM);
		if (pthread_setspecific(reasons, kept)) {
			free(kept);
			kept = NULL;
		}
	}
	if (kept)
		memmove(kept, text, strlen(text) + 1);
}

const char *onbeat_reservation_reason(void)
{
	const char *kept = reason();

	return kept ? kept : "no call of this thread has failed";
}

static int may_run_everywhere(pid_t tid)
{
	cpu_set_t allowed;

	if (sched_getaffinity(tid, sizeof(allowed), &allowed))
		return 1;
	return CPU_COUNT(&allowed) >= sysconf(_SC_NPROCESSORS_ONLN);
}

int onbeat_explain_(int error, pid_t tid, const struct onbeat_attributes *wanted)
{
	int available;

	switch (error) {
	case -EPERM:
		if (!may_run_everywhere(tid))
			return onbeat_refuse_(
				error,
				"thread %d may not run on every CPU: give it all of them "
				"(sched_setaffinity), or a cpuset partition of its own",
				tid);
		return onbeat_refuse_(
			error,
			"thread %d: SCHED_DEADLINE needs CAP_SYS_NICE: run as root, or give "
			"the program that capability",
			tid);
	case -EBUSY:
		if (onbeat_reservation_available(&available) == 0)
			return onbeat_refuse_(
				error,
				"thread %d asks for %lld thousandths of a CPU, %d are free: "
				"ask for "
				"less, or end another reservation",
				tid, (long long)(wanted->runtime_ns * 1000 / wanted->period_ns),
				available);
		return onbeat_refuse_(error, "thread %d: not as much bandwidth is free", tid);
	case -EINVAL:
		return onbeat_refuse_(error,
				      "the kernel takes runtimes from 1024 ns and periods between "
				      "kernel.sched_deadline_period_min_us and _max_us");
	case -ESRCH:
		return onbeat_refuse_(
			error, "there is no thread %d, or not in the process that was meant", tid);
	default:
		return onbeat_refuse_(error, "thread %d: %s", tid, strerror(-error));
	}
}

int onbeat_explain_answer_(pid_t tid, const struct onbeat_answer *answer)
{
	if (answer->error != -ENOTCONN)
		return answer->error ? onbeat_refuse_(answer->error, "%s", answer->why) : 0;
	if (!tid)
		return onbeat_refuse_(-EPERM,
				      "onbeat's service alone has budgets that threads share: "
				      "systemctl start onbeat; it cannot be asked now: %s",
				      answer->why);
	if (!may_run_everywhere(tid))
		return onbeat_explain_(-EPERM, tid, NULL);
	return onbeat_refuse_(
		-EPERM,
		"thread %d: SCHED_DEADLINE needs CAP_SYS_NICE: run as root, give the program that "
		"capability, or start onbeat's service (systemctl start onbeat), which cannot be "
		"asked now: %s",
		tid, answer->why);
}
