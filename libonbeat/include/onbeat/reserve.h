/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * CPU reservations for a program that asks for them: runtime in every period, before the deadline.
 * That is a guarantee; a thread may use more as far as no other reservation needs it, unless its
 * own is hard.
 *
 * The words are AQuoSA's (create, attach, detach, change, query, destroy). What is in force is the
 * kernel's SCHED_DEADLINE, which serves threads one by one: each attached thread gets the
 * reservation for itself, and counts in the admission test. A shared one is one budget for all that
 * is attached: onbeat's service gives them priority as long as some of it is left. The kernel has
 * no such budget that would be a ceiling, too; the sched_ext scheduler "reserve" has.
 *
 * Every function returns 0 or a negative errno value; onbeat_reservation_reason() then says in
 * words what happened and what to do. A reservation is used by one thread at a time; different
 * reservations are independent.
 *
 * Scheduling parameters are put back when a thread is detached, when the reservation is destroyed,
 * and when the process ends, in whatever way: its own threads end with it, and those of other
 * processes are put back by a guard, a small process that the first of them starts. Only if the
 * guard is killed as well do they keep what they were given.
 *
 * A process without CAP_SYS_NICE has onbeat's service do all of that, over D-Bus, for its own
 * user's threads and within his quotas; the end of its connection to the bus, which ends with the
 * process, is what puts them back.
 */
#ifndef ONBEAT_RESERVE_H
#define ONBEAT_RESERVE_H

#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

struct onbeat_reservation;

/* The parameters and the record of a reservation. Times are nanoseconds. */
struct onbeat_reservation_state {
	int64_t runtime_ns;
	int64_t deadline_ns;
	int64_t period_ns;
	int64_t consumed_ns; /* CPU time of its threads while attached; if shared, of the budget */
	int threads;         /* attached now; of a shared one, threads and processes */
};

/*
 * Makes a reservation that no thread has yet; nothing is admitted before the first attach.
 * A forked child's copy has no threads: those that are attached are its parent's.
 * -EINVAL unless 0 < runtime <= deadline <= period; -ENOMEM. *reservation is NULL then.
 */
int onbeat_reservation_create(struct onbeat_reservation **reservation, int64_t runtime_ns,
			      int64_t deadline_ns, int64_t period_ns);

/*
 * Makes it one budget for all threads and processes that are attached from now on, whose deadline
 * is the end of the period: while some of the runtime is left, they go before ordinary threads,
 * then they are ordinary ones until the next is there. That is the service's, also for root; what
 * the service says is as for attach. -EBUSY once a thread is attached.
 */
int onbeat_reservation_share(struct onbeat_reservation *reservation);

/*
 * Reads what is left of that budget, some milliseconds late, and never more than the runtime;
 * onbeat_reservation_query() has what was used of it. -EINVAL if it is not a shared one.
 */
int onbeat_reservation_remaining(struct onbeat_reservation *reservation, int64_t *remaining_ns);

/*
 * Gives the reservation to the thread `tid` of this process; 0 is the caller. -EPERM without the
 * privilege and without a service that permits it, or for a thread that may not run on every CPU of
 * its root domain; -EDQUOT if the service's quota for the user does not suffice; -EBUSY if the
 * bandwidth is not free; -ESRCH if this process has no such thread; -EALREADY if it is attached;
 * -EINVAL if the kernel does not take the times; -ETIMEDOUT if the service does not answer.
 */
int onbeat_reservation_attach(struct onbeat_reservation *reservation, pid_t tid);

/*
 * Makes a reservation for the calling thread, which plays or records `frames` at `rate_hz` at a
 * time and computes for at most `budget_ns` for them, until it is destroyed. Where none can be had,
 * RealtimeKit gives the thread a priority instead. 0: it has the reservation; 1: the priority.
 * -EINVAL unless 0 < budget <= frames / rate; else, if both refuse, errors as for attach.
 */
int onbeat_keep_audio_thread(struct onbeat_reservation **reservation, uint32_t frames,
			     uint32_t rate_hz, int64_t budget_ns);

/*
 * Gives the thread back the policy it had. -ENOENT if it is not attached; -ESRCH if it has ended.
 */
int onbeat_reservation_detach(struct onbeat_reservation *reservation, pid_t tid);

/*
 * Gives the reservation to each thread that the process `process` has now, or to none if one is
 * refused; 0 is the caller's own. Threads that it starts later are attached only to a shared one;
 * else call it again for them. Errors as for attach; -ESRCH if there is no such process.
 */
int onbeat_reservation_attach_process(struct onbeat_reservation *reservation, pid_t process);

/*
 * Gives the threads that were attached with their process back the policies they had. -ENOENT if
 * none is.
 */
int onbeat_reservation_detach_process(struct onbeat_reservation *reservation, pid_t process);

/*
 * Changes the times for all attached threads, or, if one of them is refused, for none.
 * Errors as for create and attach.
 */
int onbeat_reservation_change(struct onbeat_reservation *reservation, int64_t runtime_ns,
			      int64_t deadline_ns, int64_t period_ns);

/*
 * Makes the reservation a ceiling as well for its attached threads and for those that are attached
 * later; with `hard` 0 no longer, as it is at first. Where the kernel does not reclaim (before
 * 4.13) each is a ceiling, and what the service reserves is one once the user has used more than
 * his quota. Errors as for attach.
 */
int onbeat_reservation_set_hard(struct onbeat_reservation *reservation, int hard);

/* Reads what the reservation is and what it has consumed. */
int onbeat_reservation_query(struct onbeat_reservation *reservation,
			     struct onbeat_reservation_state *state);

/* Detaches every thread and frees the reservation. NULL is allowed. */
void onbeat_reservation_destroy(struct onbeat_reservation *reservation);

/*
 * The bandwidth that is free, in thousandths of a CPU, summed over all CPUs: what the kernel's
 * admission test allows less what SCHED_DEADLINE tasks hold. Other processes may take it meanwhile.
 * A negative errno value if /proc cannot be read.
 */
int onbeat_reservation_available(int *permille);

/* The meaning of the calling thread's last failed call, and what to do; never NULL. */
const char *onbeat_reservation_reason(void);

#ifdef __cplusplus
}
#endif

#endif
