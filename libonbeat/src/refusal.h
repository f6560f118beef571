/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Why a call about a reservation failed, in words that name the thread and what to do. */
#ifndef ONBEAT_SRC_REFUSAL_H
#define ONBEAT_SRC_REFUSAL_H

#include <sys/types.h>

#include "scheduler.h"
#include "service.h"

#define ONBEAT_REASON_ROOM 640

/*
 * Sets what onbeat_reservation_reason() gives to this thread: fewer than ONBEAT_REASON_ROOM bytes.
 */
void onbeat_set_reason_(const char *text);

/* Says it, and gives `error`. */
__attribute__((format(printf, 2, 3))) int onbeat_refuse_(int error, const char *format, ...);

/*
 * Says why the kernel refused `tid` these attributes; NULL if none were asked for. Gives `error`.
 */
int onbeat_explain_(int error, pid_t tid, const struct onbeat_attributes *wanted);

/*
 * Says what the service answered about `tid`. Gives 0, or -errno: -EPERM if it could not be asked.
 */
int onbeat_explain_answer_(pid_t tid, const struct onbeat_answer *answer);

#endif
