/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The library takes signals that have no handler: the program's handlers stay, and violations come
 * through.
 */
#include <onbeat/within.h>

#include <signal.h>

#include "check.h"

static volatile int heard;

static void hear(int number)
{
	(void)number;
	heard++;
}

int main(void)
{
	struct sigaction action = { .sa_handler = hear };
	volatile int violated = 0;

	for (int number = SIGRTMIN + 5; number < SIGRTMIN + 9; number++)
		check(sigaction(number, &action, NULL) == 0);
	for (volatile int i = 0; i < 5; i++) {
		onbeat_try_within_rel (ONBEAT_MS(2)) {
			compute_for_ever();
		}
		onbeat_handle
			onbeat_when (onbeat_deadline_violation) {
				violated++;
			}
		onbeat_end;
	}
	check(violated == 5 && heard == 0);
	for (int number = SIGRTMIN + 5; number < SIGRTMIN + 9; number++)
		check(raise(number) == 0);
	check(heard == 4);
	return 0;
}
