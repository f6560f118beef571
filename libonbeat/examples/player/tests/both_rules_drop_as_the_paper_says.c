/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The two frame-dropping rules on figures: sections 8.1 and 8.2 of the paper. */
#include <string.h>

#include "../../../tests/check.h"
#include "../player.h"

#define MS INT64_C(1000000)
#define FRAME (40 * MS)

int main(void)
{
	enum rule rule;

	check(!rule_drops_in_advance(0, FRAME, 0));
	check(!rule_drops_in_advance(100 * MS, FRAME, 0));
	check(rule_drops_in_advance(101 * MS, FRAME, 0));
	/* The second drop in a row needs 140 ms, the third 180. */
	check(!rule_drops_in_advance(139 * MS, FRAME, 1));
	check(rule_drops_in_advance(141 * MS, FRAME, 1));
	check(!rule_drops_in_advance(179 * MS, FRAME, 2));

	check(rule_deadline_ns(0, FRAME) == 37 * MS);
	check(rule_deadline_ns(100 * MS, FRAME) == 36 * MS);
	check(rule_deadline_ns(-200 * MS, FRAME) == 39 * MS);
	check(rule_deadline_ns(4000 * MS, FRAME) < 0);

	check(rule_of_name("deadline", &rule) && rule == RULE_DEADLINE);
	check(rule_of_name("heuristic", &rule) && rule == RULE_HEURISTIC);
	check(rule_of_name("none", &rule) && rule == RULE_NONE);
	check(!rule_of_name("", &rule));
	check(strcmp(rule_name(RULE_HEURISTIC), "heuristic") == 0);
	return 0;
}
