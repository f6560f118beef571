/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The film's sound: decoded into the sink that keeps the time. A silent film, and one whose sound
 * cannot be decoded, goes by the clock alone.
 */
#ifndef PLAYER_SOUND_H
#define PLAYER_SOUND_H

#include <stdint.h>
#include <time.h>

#include "source.h"

struct sound;

/* The one clock of the player: CLOCK_MONOTONIC, as the library's deadlines. */
static inline int64_t clock_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* NULL if there is no memory. */
struct sound *sound_open(struct source *source);
void sound_close(struct sound *sound);

/* Decodes until the sink is full or the sound is over. */
void sound_fill(struct sound *sound);
/* Lets it be heard from now on. */
void sound_start(struct sound *sound);
/* The place in the film that is being heard, in ns from the film's beginning. */
int64_t sound_position_ns(struct sound *sound);
/* How often the sink ran empty. */
int sound_underruns(const struct sound *sound);

#endif
