/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The two frame-dropping rules: T. Cucinotta and D. Faggioli, sections 8.1 and 8.2. */
#include "player.h"

#include <string.h>

#define MS INT64_C(1000000)

static const char *const names[] = {
	[RULE_NONE] = "none",
	[RULE_HEURISTIC] = "heuristic",
	[RULE_DEADLINE] = "deadline",
};

bool rule_of_name(const char *name, enum rule *rule)
{
	for (unsigned i = 0; i < sizeof(names) / sizeof(*names); i++) {
		if (strcmp(name, names[i]) == 0) {
			*rule = (enum rule)i;
			return true;
		}
	}
	return false;
}

const char *rule_name(enum rule rule)
{
	return names[rule];
}

bool rule_drops_in_advance(int64_t delay_ns, int64_t frame_time_ns, int dropped_in_burst)
{
	return delay_ns > 100 * MS + dropped_in_burst * frame_time_ns;
}

int64_t rule_deadline_ns(int64_t delay_ns, int64_t frame_time_ns)
{
	return frame_time_ns - 3 * MS - delay_ns / 100;
}
