/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A child that was forked inside blocks is still inside them, with its own timers and CPU-time
 * clock.
 *
 * Protected up to the fork's end: on a machine that stands still the limit may pass before.
 */
#include <onbeat/within.h>

#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

int main(void)
{
	volatile pid_t child = -1;
	volatile int deadline = 0;
	volatile int wcet = 0;
	int status;

	compute_ns(ONBEAT_MS(30));
	onbeat_within_disable();
	onbeat_try_within_rel (ONBEAT_MS(50)) {
		child = fork();
		onbeat_within_enable();
		compute_for_ever();
	}
	onbeat_handle
		onbeat_when (onbeat_deadline_violation) {
			deadline++;
		}
	onbeat_end;
	onbeat_within_enable();
	check(deadline == 1 && child >= 0);
	if (child == 0)
		_exit(0);
	check(waitpid(child, &status, 0) == child && status == 0);

	onbeat_within_disable();
	onbeat_try_within_wcet (ONBEAT_MS(30)) {
		child = fork();
		if (child == 0)
			check(onbeat_remaining_wcet() <= ONBEAT_MS(30));
		onbeat_within_enable();
		compute_for_ever();
	}
	onbeat_handle
		onbeat_when (onbeat_wcet_violation) {
			wcet++;
		}
	onbeat_end;
	onbeat_within_enable();
	check(wcet == 1 && child >= 0);
	if (child == 0)
		_exit(0);
	check(waitpid(child, &status, 0) == child && status == 0);
	return 0;
}
