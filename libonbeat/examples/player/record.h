/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The outcome of each frame, and its JSON (README.md lists the fields). */
#ifndef PLAYER_RECORD_H
#define PLAYER_RECORD_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum fate {
	FATE_PENDING,     /* not presented when the film was ended */
	FATE_SHOWN,       /* on the screen */
	FATE_SKIPPED,     /* dropped without being decoded */
	FATE_INTERRUPTED, /* given up while it was being decoded */
	FATE_HIDDEN,      /* decoded, but not shown */
	FATE_DAMAGED,     /* could not be decoded */
};

struct frame_record {
	int64_t position_ns; /* in the film */
	int64_t decode_ns;
	int64_t delay_ns;    /* A/V delay when it was shown */
	int64_t deadline_ns; /* what its decoding was given; INT64_MAX: no deadline */
	int64_t overrun_ns;  /* how late the violation of the deadline was notified; -1: none was */
	char type;           /* I, P, B; ? if it never came out of the decoder */
	bool reference;
	enum fate fate;
};

/* The frames in the order of decoding. */
struct record {
	struct frame_record *frames;
	int64_t count;
	int64_t room;
};

/* Adds a frame and gives its number; -1 if there is no memory. */
int64_t record_add(struct record *record, const struct frame_record *frame);
void record_free(struct record *record);

int64_t record_count(const struct record *record, enum fate fate);
/* Those that were due and were not shown, whatever the reason. */
int64_t record_dropped(const struct record *record);

/* Writes it as one JSON object. False if that failed. */
bool record_write(const struct record *record, const char *rule, int underruns, FILE *file);

#endif
