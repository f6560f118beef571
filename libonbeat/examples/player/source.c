/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Demuxing: sound and picture are interleaved in the file, and asked for at different times. */
#include "player.h"

#include <stdio.h>
#include <stdlib.h>

struct waiting {
	AVPacket *packet;
	struct waiting *next;
};

struct source {
	AVFormatContext *format;
	AVStream *video;
	AVStream *audio;
	struct waiting *first;
	struct waiting **end;
};

static AVStream *best(AVFormatContext *format, enum AVMediaType type)
{
	int index = av_find_best_stream(format, type, -1, -1, NULL, 0);

	return index < 0 ? NULL : format->streams[index];
}

struct source *source_open(const char *path)
{
	struct source *source = calloc(1, sizeof(*source));
	int error;

	if (!source)
		return NULL;
	source->end = &source->first;
	error = avformat_open_input(&source->format, path, NULL, NULL);
	if (!error)
		error = avformat_find_stream_info(source->format, NULL);
	if (error < 0) {
		fprintf(stderr, "player: %s: %s\n", path, av_err2str(error));
		goto failed;
	}
	source->video = best(source->format, AVMEDIA_TYPE_VIDEO);
	source->audio = best(source->format, AVMEDIA_TYPE_AUDIO);
	if (!source->video) {
		fprintf(stderr, "player: %s: no video in it\n", path);
		goto failed;
	}
	return source;
failed:
	source_close(source);
	return NULL;
}

void source_close(struct source *source)
{
	if (!source)
		return;
	while (source->first) {
		struct waiting *waiting = source->first;

		source->first = waiting->next;
		av_packet_free(&waiting->packet);
		free(waiting);
	}
	avformat_close_input(&source->format);
	free(source);
}

const AVStream *source_video(const struct source *source)
{
	return source->video;
}

const AVStream *source_audio(const struct source *source)
{
	return source->audio;
}

int64_t source_frame_time_ns(const struct source *source)
{
	AVRational rate = av_guess_frame_rate(source->format, source->video, NULL);

	if (rate.num <= 0 || rate.den <= 0)
		rate = (AVRational){ 25, 1 };
	return av_rescale(INT64_C(1000000000), rate.den, rate.num);
}

static int keep(struct source *source, AVPacket *packet)
{
	struct waiting *waiting = calloc(1, sizeof(*waiting));

	if (waiting)
		waiting->packet = av_packet_alloc();
	if (!waiting || !waiting->packet) {
		free(waiting);
		return AVERROR(ENOMEM);
	}
	av_packet_move_ref(waiting->packet, packet);
	*source->end = waiting;
	source->end = &waiting->next;
	return 0;
}

static int take_kept(struct source *source, const AVStream *stream, AVPacket *packet)
{
	for (struct waiting **at = &source->first; *at; at = &(*at)->next) {
		struct waiting *waiting = *at;

		if (waiting->packet->stream_index != stream->index)
			continue;
		*at = waiting->next;
		if (source->end == &waiting->next)
			source->end = at;
		av_packet_move_ref(packet, waiting->packet);
		av_packet_free(&waiting->packet);
		free(waiting);
		return 0;
	}
	return AVERROR(EAGAIN);
}

int source_next(struct source *source, const AVStream *stream, AVPacket *packet)
{
	int error = take_kept(source, stream, packet);

	while (error == AVERROR(EAGAIN)) {
		error = av_read_frame(source->format, packet);
		if (error || packet->stream_index == stream->index)
			break;
		if (packet->stream_index == source->video->index ||
		    (source->audio && packet->stream_index == source->audio->index))
			error = keep(source, packet);
		av_packet_unref(packet);
		if (!error)
			error = AVERROR(EAGAIN);
	}
	return error;
}
