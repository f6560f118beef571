/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The audio clock: a sound card without a card.
 *
 * Samples are written into a buffer and leave it at their rate, by a real-time clock. If the buffer
 * runs empty the sound stands still until more is written, and so does the picture that follows it,
 * just as with a card. No clock is read here: the time comes as an argument, and must not go back.
 */
#ifndef PLAYER_SINK_H
#define PLAYER_SINK_H

#include <stdbool.h>
#include <stdint.h>

struct sink {
	int64_t rate;     /* samples a second */
	int64_t capacity; /* samples that fit */
	int64_t written;  /* samples so far */
	int64_t played;   /* of them, when it last started to run */
	int64_t since_ns; /* when that was */
	bool running;
	bool ended; /* nothing more will be written: time goes on without sound */
	int underruns;
};

/* A sink that holds half a second. */
void sink_open(struct sink *sink, int64_t rate);
/* Lets the sound run from now on. */
void sink_start(struct sink *sink, int64_t now_ns);
/* How many samples fit now. */
int64_t sink_room(struct sink *sink, int64_t now_ns);
void sink_write(struct sink *sink, int64_t samples, int64_t now_ns);
void sink_end(struct sink *sink, int64_t now_ns);
/* How much sound has been heard, in ns. */
int64_t sink_position_ns(struct sink *sink, int64_t now_ns);

#endif
