/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * onbeat's service, which changes the scheduling of a thread for processes that may not do it
 * themselves.
 */
#ifndef ONBEAT_SRC_SERVICE_H
#define ONBEAT_SRC_SERVICE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "scheduler.h"

/* The service's answer, or why it could not be asked. */
struct onbeat_answer {
	int error; /* 0, or -errno; -ENOTCONN: there is nobody to ask; -ETIMEDOUT: what was asked may yet be done */
	char why[384];
};

struct onbeat_balance {
	uint64_t consumed_ns;
	uint64_t remaining_ns;
};

/*
 * Has the service give the thread this runtime, deadline and period, whole or not at all. They are
 * held by this process's connection to the bus, and put back at the latest when that ends, however
 * it does.
 */
void onbeat_service_reserve_(pid_t tid, const struct onbeat_attributes *wanted,
			     struct onbeat_answer *answer);

/*
 * Has it give the thread, or the process that joined an account, back what it had. That it no
 * longer holds anything for it is no error.
 */
void onbeat_service_release_(pid_t tid, bool joined, struct onbeat_answer *answer);

/*
 * Has it make or change this process's account of that number, or end it if the runtime is 0; has a
 * thread, or a whole process with all threads that it starts, join it; reads what its threads have
 * used of it and what is left.
 */
void onbeat_service_share_(uint32_t account, uint64_t runtime_ns, uint64_t period_ns,
			   struct onbeat_answer *answer);
void onbeat_service_join_(pid_t tid, uint32_t account, bool whole, struct onbeat_answer *answer);
void onbeat_service_balance_(uint32_t account, struct onbeat_balance *balance,
			     struct onbeat_answer *answer);

/*
 * The same for a thread for which a reservation was asked without an answer: should it be given
 * yet, it is put back.
 */
void onbeat_service_withdraw_(pid_t tid);

#endif
