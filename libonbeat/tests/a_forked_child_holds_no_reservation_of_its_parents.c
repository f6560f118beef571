/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A child that changes, detaches or destroys its copy of a reservation leaves the parent's threads
 * alone: it has a reservation without threads. With a scheduler of the test's own.
 */
#include <onbeat/reserve.h>

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../src/reservation.h"
#include "check.h"

#define MS INT64_C(1000000)

static struct onbeat_attributes in_force;
static pid_t parent;
static int changes;

static int get(pid_t tid, struct onbeat_attributes *attributes)
{
	(void)tid;
	*attributes = in_force;
	return 0;
}

static int set(pid_t tid, const struct onbeat_attributes *attributes)
{
	check(getpid() == parent || tid != parent);
	in_force = *attributes;
	changes++;
	return 0;
}

static const struct onbeat_scheduler tested = { get, set };

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

int main(void)
{
	struct onbeat_reservation *reservation, *none = (void *)&in_force;
	struct onbeat_reservation_state state;
	int status;
	pid_t child;

	parent = getpid();
	onbeat_scheduler_ = &tested;
	check(onbeat_reservation_create(&reservation, 2 * MS, 10 * MS, 10 * MS) == 0);
	check(onbeat_reservation_attach(reservation, 0) == 0);
	child = fork();
	check(child >= 0);
	if (child == 0)
		in_the_child(reservation);
	check(waitpid(child, &status, 0) == child && status == 0);
	check(onbeat_reservation_query(reservation, &state) == 0);
	check(state.threads == 1 && state.runtime_ns == 2 * MS && changes == 1);
	onbeat_reservation_destroy(reservation);
	check(changes == 2);

	/* One that was not made is none, and may be destroyed. */
	check(onbeat_reservation_create(&none, 3 * MS, 2 * MS, 1 * MS) == -EINVAL && !none);
	onbeat_reservation_destroy(none);
	return 0;
}
