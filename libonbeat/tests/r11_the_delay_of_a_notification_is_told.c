/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Requirements 8 and 11: a handler knows how late its violation was notified. */
#include <onbeat/within.h>

#include "check.h"

int main(void)
{
	volatile int64_t expiry_ns = now_ns() + ONBEAT_MS(3);
	volatile int64_t delay_ns = -1;

	onbeat_try_within_abs (expiry_ns) {
		compute_for_ever();
	}
	onbeat_handle
		onbeat_when (onbeat_deadline_violation) {
			delay_ns = onbeat_delay();
		}
	onbeat_end;
	check(delay_ns >= 0);
	check(delay_ns <= now_ns() - expiry_ns);
	return 0;
}
