/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A thread that had a reservation of its own is detached while others have taken what it gave back:
 * the kernel says EBUSY. It keeps what it had from us, and the caller is told. With a scheduler of
 * the test's own, which stands where a broker will: nothing goes past it.
 */
#include <onbeat/reserve.h>

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../src/reservation.h"
#include "check.h"

#define MS INT64_C(1000000)

static struct onbeat_attributes in_force;
static int is_full, changes;

static int get(pid_t tid, struct onbeat_attributes *attributes)
{
	/* The refusal asks of all threads what they hold. */
	if (tid != (pid_t)syscall(SYS_gettid))
		return -ESRCH;
	*attributes = in_force;
	return 0;
}

static int set(pid_t tid, const struct onbeat_attributes *attributes)
{
	check(tid == (pid_t)syscall(SYS_gettid));
	changes++;
	if (is_full)
		return -EBUSY;
	in_force = *attributes;
	return 0;
}

static const struct onbeat_attributes own = {
	.size = sizeof(own),
	.policy = ONBEAT_POLICY_DEADLINE,
	.runtime_ns = 50 * MS,
	.deadline_ns = 100 * MS,
	.period_ns = 100 * MS,
};

static struct onbeat_reservation *attached(void)
{
	struct onbeat_reservation *reservation;

	in_force = own;
	is_full = 0;
	check(onbeat_reservation_create(&reservation, 2 * MS, 10 * MS, 10 * MS) == 0);
	check(onbeat_reservation_attach(reservation, 0) == 0);
	check(in_force.runtime_ns == 2 * MS);
	return reservation;
}

int main(void)
{
	const struct onbeat_scheduler scheduler = { get, set };
	struct onbeat_reservation *reservation;
	struct onbeat_reservation_state state;

	onbeat_scheduler_ = &scheduler;

	reservation = attached();
	check(onbeat_reservation_detach(reservation, 0) == 0);
	check(in_force.runtime_ns == 50 * MS && in_force.period_ns == 100 * MS);
	check(changes == 2);
	onbeat_reservation_destroy(reservation);

	reservation = attached();
	is_full = 1;
	check(onbeat_reservation_detach(reservation, 0) == -EBUSY);
	check(strstr(onbeat_reservation_reason(), "asks for 500 thousandths of a CPU"));
	check(in_force.runtime_ns == 2 * MS);
	check(onbeat_reservation_query(reservation, &state) == 0 && state.threads == 0);
	check(onbeat_reservation_detach(reservation, 0) == -ENOENT);
	onbeat_reservation_destroy(reservation);

	/* Nor is a reservation kept alive by one that cannot be put back. */
	reservation = attached();
	is_full = 1;
	onbeat_reservation_destroy(reservation);
	check(in_force.runtime_ns == 2 * MS);
	return 0;
}
