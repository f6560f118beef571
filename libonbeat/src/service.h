/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * onbeat's service, which changes the scheduling of a thread for processes that may not do it
 * themselves.
 */
#ifndef ONBEAT_SRC_SERVICE_H
#define ONBEAT_SRC_SERVICE_H

#include <sys/types.h>

#include "scheduler.h"

/* The service's answer, or why it could not be asked. */
struct onbeat_answer {
	int error; /* 0, or -errno; -ENOTCONN: there is nobody to ask; -ETIMEDOUT: what was asked may yet be done */
	char why[384];
};

/*
 * Has the service give the thread this runtime, deadline and period, whole or not at all. They are
 * held by this process's connection to the bus, and put back at the latest when that ends, however
 * it does.
 */
void onbeat_service_reserve_(pid_t tid, const struct onbeat_attributes *wanted,
			     struct onbeat_answer *answer);

/* Has it give the thread back what it had. That it no longer holds anything for it is no error. */
void onbeat_service_release_(pid_t tid, struct onbeat_answer *answer);

/*
 * The same for a thread for which a reservation was asked without an answer: should it be given
 * yet, it is put back.
 */
void onbeat_service_withdraw_(pid_t tid);

#endif
