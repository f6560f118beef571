/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * When to drop a frame: the two rules that are compared.
 *
 * Both go by the A/V delay: the position of the sound less that of the picture, so that it is
 * positive while the picture lags. Nothing here reads a clock.
 */
#ifndef PLAYER_RULE_H
#define PLAYER_RULE_H

#include <stdbool.h>
#include <stdint.h>

enum rule {
	RULE_NONE,      /* every frame is decoded and shown, however late */
	RULE_HEURISTIC, /* decided in advance, from the present delay */
	RULE_DEADLINE,  /* decoded until the deadline has passed */
};

/* The rule of that name; false if there is none. */
bool rule_of_name(const char *name, enum rule *rule);
const char *rule_name(enum rule rule);

/*
 * The usual heuristic (section 8.1): whether the next frame is to be dropped. A delay of 100 ms is
 * let pass; in a burst of drops, one frame's time more for each frame that was dropped in it, so
 * that a burst must be ever more urgent to go on.
 */
bool rule_drops_in_advance(int64_t delay_ns, int64_t frame_time_ns, int dropped_in_burst);

/*
 * The time that the next frame's decoding may take (section 8.2): what lies between two frames less
 * 3 ms for everything else (37 ms at 25 frames a second), less a hundredth of the delay.
 */
int64_t rule_deadline_ns(int64_t delay_ns, int64_t frame_time_ns);

#endif
