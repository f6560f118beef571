/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Reservations through a scheduler of the test's own, which stands where a broker will: nothing
 * goes past it.
 *
 * - Threads reclaim what others leave, unless the reservation is hard or the kernel does not know
 *   that.
 * - A thread that had a reservation of its own is detached while others have taken what it gave
 *   back: it keeps what it had from us, and the caller is told.
 * - A child that changes, detaches or destroys its copy of a reservation leaves the parent's
 *   threads alone: it has a reservation without threads.
 */
#include <onbeat/reserve.h>

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../src/reservation.h"
#include "check.h"

#define MS INT64_C(1000000)

static struct onbeat_attributes in_force;
static bool reclaims = true, is_full;
static pid_t parent;
static int changes;

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
	if (!reclaims && (attributes->flags & ONBEAT_RECLAIM))
		return -EINVAL;
	changes++;
	if (is_full)
		return -EBUSY;
	in_force = *attributes;
	return 0;
}

static struct onbeat_reservation *attached(void)
{
	struct onbeat_reservation *reservation;

	check(onbeat_reservation_create(&reservation, 2 * MS, 10 * MS, 10 * MS) == 0);
	check(onbeat_reservation_attach(reservation, 0) == 0);
	check(in_force.runtime_ns == 2 * MS);
	return reservation;
}

static bool is_soft(void)
{
	check(in_force.policy == ONBEAT_POLICY_DEADLINE);
	check(in_force.flags & ONBEAT_RESET_ON_FORK);
	return in_force.flags & ONBEAT_RECLAIM;
}

static void it_is_a_ceiling_only_where_it_is_hard(void)
{
	struct onbeat_reservation *reservation = attached();

	check(is_soft());
	check(onbeat_reservation_set_hard(reservation, 1) == 0 && !is_soft());
	check(onbeat_reservation_change(reservation, 3 * MS, 10 * MS, 10 * MS) == 0 && !is_soft());
	check(onbeat_reservation_set_hard(reservation, 0) == 0 && is_soft());
	check(in_force.runtime_ns == 3 * MS);
	reclaims = false;
	check(onbeat_reservation_change(reservation, 4 * MS, 10 * MS, 10 * MS) == 0 && !is_soft());
	check(in_force.runtime_ns == 4 * MS);
	onbeat_reservation_destroy(reservation);
	check(in_force.policy != ONBEAT_POLICY_DEADLINE);
	reclaims = true;
}

static void in_the_child(struct onbeat_reservation *reservation)
{
	struct onbeat_reservation_state state;

	changes = 0;
	check(onbeat_reservation_change(reservation, 3 * MS, 10 * MS, 10 * MS) == 0);
	check(onbeat_reservation_detach(reservation, parent) == -ENOENT);
	check(onbeat_reservation_detach_process(reservation, parent) == -ENOENT);
	check(onbeat_reservation_query(reservation, &state) == 0);
	check(state.threads == 0 && state.runtime_ns == 3 * MS && state.consumed_ns == 0);
	check(changes == 0);
	check(onbeat_reservation_attach(reservation, 0) == 0);
	check(changes == 1);
	check(onbeat_reservation_query(reservation, &state) == 0 && state.threads == 1);
	onbeat_reservation_destroy(reservation);
	check(changes == 2);
	exit(0);
}

static void a_child_holds_nothing_of_its_parents(void)
{
	struct onbeat_reservation *reservation = attached();
	struct onbeat_reservation_state state;
	int status, before = changes;
	pid_t child;

	parent = getpid();
	child = fork();
	check(child >= 0);
	if (child == 0)
		in_the_child(reservation);
	check(waitpid(child, &status, 0) == child && status == 0);
	check(onbeat_reservation_query(reservation, &state) == 0);
	check(state.threads == 1 && state.runtime_ns == 2 * MS && changes == before);
	onbeat_reservation_destroy(reservation);
	check(changes == before + 1);
}

static void what_had_no_room_to_be_put_back_is_told(void)
{
	static const struct onbeat_attributes own = {
		.size = sizeof(own),
		.policy = ONBEAT_POLICY_DEADLINE,
		.runtime_ns = 50 * MS,
		.deadline_ns = 100 * MS,
		.period_ns = 100 * MS,
	};
	struct onbeat_reservation *reservation;
	struct onbeat_reservation_state state;

	in_force = own;
	reservation = attached();
	check(onbeat_reservation_detach(reservation, 0) == 0);
	check(in_force.runtime_ns == 50 * MS && in_force.period_ns == 100 * MS);
	onbeat_reservation_destroy(reservation);

	reservation = attached();
	is_full = true;
	check(onbeat_reservation_detach(reservation, 0) == -EBUSY);
	check(strstr(onbeat_reservation_reason(), "asks for 500 thousandths of a CPU"));
	check(in_force.runtime_ns == 2 * MS);
	check(onbeat_reservation_query(reservation, &state) == 0 && state.threads == 0);
	check(onbeat_reservation_detach(reservation, 0) == -ENOENT);
	onbeat_reservation_destroy(reservation);

	/* Nor is a reservation kept alive by one that cannot be put back. */
	in_force = own;
	is_full = false;
	reservation = attached();
	is_full = true;
	onbeat_reservation_destroy(reservation);
	check(in_force.runtime_ns == 2 * MS);
}

int main(void)
{
	static const struct onbeat_scheduler scheduler = { get, set };

	onbeat_scheduler_ = &scheduler;
	it_is_a_ceiling_only_where_it_is_hard();
	a_child_holds_nothing_of_its_parents();
	what_had_no_room_to_be_put_back_is_told();
	return 0;
}
