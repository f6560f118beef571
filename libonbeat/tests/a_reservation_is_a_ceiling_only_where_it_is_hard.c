/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Threads reclaim what others leave, unless the reservation is hard or the kernel does not know
 * that. With a scheduler of the test's own.
 */
#include <onbeat/reserve.h>

#include <errno.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../src/reservation.h"
#include "check.h"

#define MS INT64_C(1000000)

static struct onbeat_attributes in_force;
static bool reclaims = true;
static int changes;

static int get(pid_t tid, struct onbeat_attributes *attributes)
{
	(void)tid;
	*attributes = in_force;
	return 0;
}

static int set(pid_t tid, const struct onbeat_attributes *attributes)
{
	(void)tid;
	if (!reclaims && (attributes->flags & ONBEAT_RECLAIM))
		return -EINVAL;
	in_force = *attributes;
	changes++;
	return 0;
}

static const struct onbeat_scheduler tested = { get, set };

static bool is_soft(void)
{
	check(in_force.policy == ONBEAT_POLICY_DEADLINE);
	check(in_force.flags & ONBEAT_RESET_ON_FORK);
	return in_force.flags & ONBEAT_RECLAIM;
}

int main(void)
{
	struct onbeat_reservation *reservation;

	onbeat_scheduler_ = &tested;
	check(onbeat_reservation_create(&reservation, 2 * MS, 10 * MS, 10 * MS) == 0);
	check(onbeat_reservation_set_hard(reservation, 0) == 0 && changes == 0);
	check(onbeat_reservation_attach(reservation, 0) == 0 && is_soft());
	check(onbeat_reservation_set_hard(reservation, 1) == 0 && !is_soft());
	check(onbeat_reservation_change(reservation, 3 * MS, 10 * MS, 10 * MS) == 0 && !is_soft());
	check(onbeat_reservation_set_hard(reservation, 0) == 0 && is_soft());
	check(in_force.runtime_ns == 3 * MS);

	reclaims = false;
	check(onbeat_reservation_change(reservation, 4 * MS, 10 * MS, 10 * MS) == 0 && !is_soft());
	check(in_force.runtime_ns == 4 * MS);
	onbeat_reservation_destroy(reservation);
	check(in_force.policy != ONBEAT_POLICY_DEADLINE);
	return 0;
}
