/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Demuxing: sound and picture are interleaved in the file, and asked for at different times. */
#include "player.h"

#include <stdlib.h>

static const AVStream *best(AVFormatContext *format, enum AVMediaType type)
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
	source->kept = av_fifo_alloc2(64, sizeof(AVPacket *), AV_FIFO_FLAG_AUTO_GROW);
	error = source->kept ? avformat_open_input(&source->format, path, NULL, NULL)
			     : AVERROR(ENOMEM);
	if (!error)
		error = avformat_find_stream_info(source->format, NULL);
	if (error >= 0) {
		source->video = best(source->format, AVMEDIA_TYPE_VIDEO);
		source->audio = best(source->format, AVMEDIA_TYPE_AUDIO);
		if (source->video)
			return source;
	}
	fprintf(stderr, "player: %s: %s\n", path, error < 0 ? av_err2str(error) : "no video in it");
	source_close(source);
	return NULL;
}

void source_close(struct source *source)
{
	AVPacket *kept;

	if (!source)
		return;
	while (source->kept && av_fifo_read(source->kept, &kept, 1) == 0)
		av_packet_free(&kept);
	av_fifo_freep2(&source->kept);
	avformat_close_input(&source->format);
	free(source);
}

int64_t source_frame_time_ns(const struct source *source)
{
	AVRational rate = av_guess_frame_rate(source->format, (AVStream *)source->video, NULL);

	if (rate.num <= 0 || rate.den <= 0)
		rate = (AVRational){ 25, 1 };
	return av_rescale(INT64_C(1000000000), rate.den, rate.num);
}

int source_next(struct source *source, const AVStream *stream, AVPacket *packet)
{
	const AVStream *other = stream == source->video ? source->audio : source->video;
	AVPacket *kept;
	int error;

	if (av_fifo_peek(source->kept, &kept, 1, 0) == 0 && kept->stream_index == stream->index) {
		av_fifo_drain2(source->kept, 1);
		av_packet_move_ref(packet, kept);
		av_packet_free(&kept);
		return 0;
	}
	while ((error = av_read_frame(source->format, packet)) == 0 &&
	       packet->stream_index != stream->index) {
		kept = NULL;
		if (other && packet->stream_index == other->index &&
		    (!(kept = av_packet_clone(packet)) ||
		     av_fifo_write(source->kept, &kept, 1) < 0))
			error = AVERROR(ENOMEM);
		av_packet_unref(packet);
		if (error) {
			av_packet_free(&kept);
			break;
		}
	}
	return error;
}
