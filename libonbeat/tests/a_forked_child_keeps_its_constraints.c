/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A child that was forked inside blocks is still inside them, with its own timers and CPU-time
 * clock.
 *
 * Protected up to the fork's end: on a machine that stands still the limit may pass before.
 */
#include <onbeat/within.h>

#include "check.h"

static volatile pid_t child;

static void fork_and_compute(void)
{
	child = fork();
	check(child || onbeat_remaining_wcet() == ONBEAT_FOREVER || onbeat_remaining_wcet() <= ONBEAT_MS(30));
	onbeat_within_enable();
	compute_for_ever();
}

static void after_the_violation(void)
{
	onbeat_within_enable();
	if (child == 0)
		_exit(0);
	wait_for(child);
}

int main(void)
{
	compute_ns(ONBEAT_MS(30));
	onbeat_within_disable();
	check_left_by(onbeat_deadline_violation, onbeat_try_within_rel (ONBEAT_MS(50)), fork_and_compute());
	after_the_violation();
	onbeat_within_disable();
	check_left_by(onbeat_wcet_violation, onbeat_try_within_wcet (ONBEAT_MS(30)), fork_and_compute());
	after_the_violation();
	return 0;
}
