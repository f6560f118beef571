/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A limit that no clock can read is long past, or never comes. */
#include <onbeat/within.h>

#include <unistd.h>

#include "check.h"

static volatile int violated;

#define LIMITED_TO(constrained, ns, body)                                      \
	constrained (ns) {                                                     \
		body;                                                          \
	}                                                                      \
	onbeat_handle                                                          \
		onbeat_when (onbeat_timing_constraint_violation) {             \
			check(onbeat_delay() >= 0);                            \
			violated++;                                            \
		}                                                              \
	onbeat_end

int main(void)
{
	static const int64_t past[] = { INT64_MIN, INT64_MIN + 1, -ONBEAT_S(1), -1, 0 };

	/* One that is taken for neither would be signalled for ever. */
	alarm(60);
	for (volatile size_t i = 0; i < sizeof(past) / sizeof(past[0]); i++) {
		violated = 0;
		LIMITED_TO(onbeat_try_within_rel, past[i], compute_for_ever());
		LIMITED_TO(onbeat_try_within_abs, past[i], compute_for_ever());
		LIMITED_TO(onbeat_try_within_wcet, past[i], compute_for_ever());
		check(violated == 3);
	}
	violated = 0;
	LIMITED_TO(onbeat_try_within_rel, INT64_MAX, compute_ns(ONBEAT_MS(1)));
	LIMITED_TO(onbeat_try_within_abs, INT64_MAX, compute_ns(ONBEAT_MS(1)));
	LIMITED_TO(onbeat_try_within_wcet, INT64_MAX, compute_ns(ONBEAT_MS(1)));
	check(violated == 0);
	return 0;
}
