/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The parts of the player, each in a file of that name. */
#ifndef PLAYER_H
#define PLAYER_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libavutil/fifo.h>
#include <libavutil/frame.h>

/* A film's file: the packets of its video and, unless it is silent, of its audio stream. */
struct source {
	AVFormatContext *format;
	const AVStream *video, *audio;
	AVFifo *kept; /* packets of the one that came while the other's were asked for */
};

/* NULL, with a message on standard error, if there is no video in it. */
struct source *source_open(const char *path);
void source_close(struct source *source);
int64_t source_frame_time_ns(const struct source *source);
/* The next packet of a stream. 0 or a negative AVERROR. */
int source_next(struct source *source, const AVStream *stream, AVPacket *packet);

/*
 * A video decoder that can be told, in the middle of a picture, to give that picture up; README.md
 * says how, and why that is safe. It decodes in the thread that calls it.
 */
struct decoder;

struct decoder_limit {
	bool references_only; /* skip it altogether, unless it is a reference */
	bool (*stop)(void);   /* asked at each safe point; NULL: never stop */
};

struct decoder_outcome {
	bool begun;     /* the decoder asked for the picture's memory */
	bool reference; /* as the decoder said then; without meaning if not begun */
	bool given_up;  /* what came out of it, if anything, is not a whole picture */
};

/* NULL if there is none for the stream's codec. */
struct decoder *decoder_open(const AVStream *stream);
void decoder_close(struct decoder *decoder);

/*
 * Decodes a packet, or ends the stream if it is NULL. The pictures carry the `pts` of their
 * packets. 0, or a negative AVERROR: the packet was damaged, and decoding may go on.
 */
int decoder_decode(struct decoder *decoder, const AVPacket *packet, struct decoder_limit limit,
		   struct decoder_outcome *outcome);

/* The next picture in the order of presentation. 0, AVERROR(EAGAIN) or AVERROR_EOF. */
int decoder_take(struct decoder *decoder, AVFrame *picture);

/*
 * The audio clock: a sound card without a card. If the buffer runs empty the sound stands still
 * until more is written. The time comes as an argument, and must not go back.
 */
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
void sink_start(struct sink *sink, int64_t now_ns);
int64_t sink_room(struct sink *sink, int64_t now_ns);
void sink_write(struct sink *sink, int64_t samples, int64_t now_ns);
void sink_end(struct sink *sink, int64_t now_ns);
/* How much sound has been heard, in ns. */
int64_t sink_position_ns(struct sink *sink, int64_t now_ns);

/*
 * The film's sound: decoded into the sink that keeps the time. A silent film, and one whose sound
 * cannot be decoded, goes by the clock alone.
 */
struct sound;

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
void sound_start(struct sound *sound);
/* The place in the film that is being heard, in ns from the film's beginning. */
int64_t sound_position_ns(struct sound *sound);
int sound_underruns(const struct sound *sound);

/* A window on $DISPLAY. */
struct screen;

/* NULL, with a message on standard error, if there is no display. */
struct screen *screen_open(const char *title);
void screen_close(struct screen *screen);
/* Shows a picture; the window takes the size of the first. False if that failed. */
bool screen_show(struct screen *screen, const AVFrame *picture);
/* Whether the user wants to end: `q`, or the window was closed. */
bool screen_wants_to_end(struct screen *screen);

/*
 * When to drop a frame (README.md). The A/V delay is the position of the sound less that of the
 * picture, so that it is positive while the picture lags.
 */
enum rule {
	RULE_NONE,      /* every frame is decoded and shown, however late */
	RULE_HEURISTIC, /* decided in advance, from the present delay */
	RULE_DEADLINE,  /* decoded until the deadline has passed */
	RULES,
};

/*
 * The usual heuristic (section 8.1): whether the next frame is to be dropped. A delay of 100 ms is
 * let pass; in a burst of drops, one frame's time more for each frame that was dropped in it, so
 * that a burst must be ever more urgent to go on.
 */
bool rule_drops_in_advance(int64_t delay_ns, int64_t frame_time_ns, int dropped_in_burst);

/*
 * The time that the next frame's decoding may take (section 8.2): what lies between two frames
 * less 3 ms for everything else (37 ms at 25 frames a second), less a hundredth of the delay.
 */
int64_t rule_deadline_ns(int64_t delay_ns, int64_t frame_time_ns);

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

/* In the order of decoding. */
struct record {
	struct frame_record *frames;
	int64_t count;
	int64_t room;
};

/* Adds a frame and gives its number; -1 if there is no memory. */
int64_t record_add(struct record *record, const struct frame_record *frame);
int64_t record_count(const struct record *record, enum fate fate);
/* Those that were due and were not shown, whatever the reason. */
int64_t record_dropped(const struct record *record);

/* As one JSON object, whose fields README.md lists. False if that failed. */
bool record_write(const struct record *record, const char *rule, int underruns, FILE *file);

/* Plays a film: keeps the picture with the sound, and drops frames by a rule when it cannot. */
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
