/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A film's file: the packets of its first video and first audio stream, each asked for by itself.
 */
#ifndef PLAYER_SOURCE_H
#define PLAYER_SOURCE_H

#include <libavformat/avformat.h>

struct source;

/*
 * Opens a file with at least a video stream. NULL, with a message on standard error, if that fails.
 */
struct source *source_open(const char *path);
void source_close(struct source *source);

const AVStream *source_video(const struct source *source);
/* NULL if the film is silent. */
const AVStream *source_audio(const struct source *source);

/* The time between two frames. */
int64_t source_frame_time_ns(const struct source *source);

/*
 * The next packet of a stream; those of the other that come before it are kept. 0 or a negative
 * AVERROR.
 */
int source_next(struct source *source, const AVStream *stream, AVPacket *packet);

#endif
