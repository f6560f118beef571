/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Plays a film: keeps the picture with the sound, and drops frames by a rule when it cannot. */
#ifndef PLAYER_PLAY_H
#define PLAYER_PLAY_H

#include <signal.h>

#include "record.h"
#include "rule.h"
#include "screen.h"
#include "source.h"

struct play {
	struct source *source;
	struct screen *screen; /* NULL: shown nowhere */
	enum rule rule;
	const volatile sig_atomic_t *ended; /* set from outside to end early */
	struct record *record;              /* where the frames go */
	int underruns;                      /* how often the sound ran out */
};

/* Plays it to its end, or until it is to end. 0, or -1 with a message on standard error. */
int play(struct play *play);

#endif
