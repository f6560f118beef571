/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The one clock of the player: CLOCK_MONOTONIC, as the library's deadlines. */
#ifndef PLAYER_CLOCK_H
#define PLAYER_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline int64_t clock_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Sleeps for that long, or until a signal comes. */
static inline void clock_sleep_ns(int64_t ns)
{
	struct timespec time = { ns / 1000000000, ns % 1000000000 };

	if (ns > 0)
		clock_nanosleep(CLOCK_MONOTONIC, 0, &time, NULL);
}

#endif
