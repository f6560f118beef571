/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Shared by the parts of <onbeat/reserve.h>: who changes the scheduling of a thread (the kernel, or
 * onbeat's service for those without the privilege), who puts it back, and why that was refused.
 * Errors are -errno.
 */
#ifndef ONBEAT_SRC_RESERVATION_H
#define ONBEAT_SRC_RESERVATION_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define ONBEAT_POLICY_DEADLINE 6
#define ONBEAT_RESET_ON_FORK 0x01
#define ONBEAT_RECLAIM 0x02

/* As sched_setattr(2) writes it; glibc has no struct for it before 2.41. */
struct onbeat_attributes {
	uint32_t size;
	uint32_t policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime_ns;
	uint64_t deadline_ns;
	uint64_t period_ns;
};

/* The kernel; in tests another. The guard calls it, too, so it is async-signal-safe. */
struct onbeat_scheduler {
	int (*get)(pid_t tid, struct onbeat_attributes *attributes);
	int (*set)(pid_t tid, const struct onbeat_attributes *attributes);
};

extern const struct onbeat_scheduler *onbeat_scheduler_;

/*
 * guard.c: a thread, with what it had before it was attached. Numbers are used again, start times
 * are not.
 */
struct onbeat_guarded {
	pid_t tid;
	uint64_t started; /* the 22nd figure of /proc/TID/stat; 0: there is no such thread */
	struct onbeat_attributes before;
};

uint64_t onbeat_started_(pid_t tid);
/* Gives the thread what it had, if it is there and still under SCHED_DEADLINE. */
int onbeat_put_back_(const struct onbeat_guarded *guarded, uint64_t period_ns);
/* From now on a guard puts the thread back should this process end or exec; then no longer. */
int onbeat_guard_(const struct onbeat_guarded *guarded);
void onbeat_unguard_(const struct onbeat_guarded *guarded);

/* service.c: the service's answer, or why it could not be asked. */
struct onbeat_answer {
	int error; /* -ENOTCONN: there is nobody to ask; -ETIMEDOUT: it may yet be done */
	char why[384];
	uint64_t consumed_ns, remaining_ns; /* of ONBEAT_BALANCE */
};

/* The types of a call's numbers, as D-Bus writes them. */
enum onbeat_types { ONBEAT_U, ONBEAT_BALANCE, ONBEAT_UTT, ONBEAT_UTTT, ONBEAT_UUB, ONBEAT_KIT_TU };

/*
 * Calls a method of the service (docs/bus.md), or of RealtimeKit, with as many of the numbers as
 * there are types. What the service gives is held by this process's connection to the bus, and put
 * back at the latest when that ends.
 */
void onbeat_ask_(struct onbeat_answer *answer, const char *method, enum onbeat_types types,
		 uint32_t first, uint64_t second, uint64_t third, uint64_t fourth);
/* Gives back, without waiting, what was reserved for a thread and not answered. */
void onbeat_withdraw_(pid_t tid);

/* admission.c: the number, a long long, that a file holds in this format of scanf(3). */
long long onbeat_read_(const char *path, const char *format, long long otherwise);

/* refusal.c: what onbeat_reservation_reason() gives to this thread, in fewer bytes than that. */
#define ONBEAT_REASON_ROOM 640

void onbeat_set_reason_(const char *text);
/* These say why, and give the error. */
__attribute__((format(printf, 2, 3))) int onbeat_refuse_(int error, const char *format, ...);
/* The kernel refused `tid` these attributes; NULL if none were asked for. */
int onbeat_explain_(int error, pid_t tid, const struct onbeat_attributes *wanted);
/* The service answered this about `tid`: -EPERM if it could not be asked. */
int onbeat_explain_answer_(pid_t tid, const struct onbeat_answer *answer);

#endif
