/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * CPU reservations for a program that asks for them: runtime in every period, before the deadline.
 * That is a guarantee; a thread may use more as far as no other reservation needs it, unless its
 * own is hard.
 *
 * The words are AQuoSA's (create, attach, detach, change, query, destroy). What is in force is the
 * kernel's SCHED_DEADLINE, for each attached thread by itself; a shared reservation is one budget
 * for all that is attached, which onbeat's service serves. A process without CAP_SYS_NICE has the
 * service do all of it, over D-Bus, within its user's quotas.
 *
 * Every function returns 0 or a negative errno value; onbeat_reservation_reason() then says in
 * words what happened and what to do. A reservation is used by one thread at a time; different
 * reservations are independent. onbeat_reservation_create(3) has each error, and how what was
 * changed is put back however the process ends.
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
 * Makes a reservation that no thread has yet; nothing is admitted before the first attach. A
 * forked child's copy has no threads. If it fails, *reservation is NULL.
 */
int onbeat_reservation_create(struct onbeat_reservation **reservation, int64_t runtime_ns,
			      int64_t deadline_ns, int64_t period_ns);

/*
 * Makes it one budget for all threads and processes that are attached from now on: while some of
 * the runtime is left, they go before ordinary threads, then they are ordinary until the next is
 * there.
 */
int onbeat_reservation_share(struct onbeat_reservation *reservation);
/* Reads what is left of that budget, some milliseconds late, and never more than the runtime. */
int onbeat_reservation_remaining(struct onbeat_reservation *reservation, int64_t *remaining_ns);

/* Gives the reservation to the thread `tid` of this process; 0 is the caller. */
int onbeat_reservation_attach(struct onbeat_reservation *reservation, pid_t tid);

/*
 * Makes a reservation for the calling thread, which plays or records `frames` at `rate_hz` at a
 * time and computes for at most `budget_ns` for them, until it is destroyed. Where none can be
 * had, RealtimeKit gives the thread a priority instead. 0: it has the reservation; 1: the
 * priority. -EINVAL unless 0 < budget <= frames / rate; else, if both refuse, errors as for
 * attach.
 */
int onbeat_keep_audio_thread(struct onbeat_reservation **reservation, uint32_t frames,
			     uint32_t rate_hz, int64_t budget_ns);

/* Gives the thread back the policy it had. */
int onbeat_reservation_detach(struct onbeat_reservation *reservation, pid_t tid);

/*
 * Gives the reservation to each thread that the process `process` has now, or to none if one is
 * refused; 0 is the caller's own. Threads that it starts later are attached only to a shared one.
 */
int onbeat_reservation_attach_process(struct onbeat_reservation *reservation, pid_t process);
/* Gives the threads that were attached with their process back the policies they had. */
int onbeat_reservation_detach_process(struct onbeat_reservation *reservation, pid_t process);

/* Changes the times for all attached threads, or, if one of them is refused, for none. */
int onbeat_reservation_change(struct onbeat_reservation *reservation, int64_t runtime_ns,
			      int64_t deadline_ns, int64_t period_ns);
/*
 * Makes the reservation a ceiling as well for its threads, those that are attached later among
 * them; with `hard` 0 no longer, as it is at first.
 */
int onbeat_reservation_set_hard(struct onbeat_reservation *reservation, int hard);
/* Reads what the reservation is and what it has consumed. */
int onbeat_reservation_query(struct onbeat_reservation *reservation,
			     struct onbeat_reservation_state *state);
/* Detaches every thread and frees the reservation. NULL is allowed. */
void onbeat_reservation_destroy(struct onbeat_reservation *reservation);

/* The bandwidth that is free, in thousandths of a CPU, summed over all CPUs. */
int onbeat_reservation_available(int *permille);

/* The meaning of the calling thread's last failed call, and what to do; never NULL. */
const char *onbeat_reservation_reason(void);

#ifdef __cplusplus
}
#endif

#endif
