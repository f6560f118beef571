/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Audio decoding, and the one clock that the picture follows; player.h says what it imitates. */
#include "player.h"

#include <stdlib.h>

#define SECOND INT64_C(1000000000)

/* The samples heard until now; stops the sink if its buffer has run empty. */
static int64_t heard(struct sink *sink, int64_t now_ns)
{
	int64_t samples = sink->played;

	if (!sink->running)
		return samples;
	samples += av_rescale_rnd(now_ns - sink->since_ns, sink->rate, SECOND, AV_ROUND_DOWN);
	if (samples <= sink->written || sink->ended)
		return samples;
	sink->underruns++;
	sink->running = false;
	sink->played = sink->written;
	return sink->played;
}

void sink_open(struct sink *sink, int64_t rate)
{
	*sink = (struct sink){ .rate = rate, .capacity = rate / 2 };
}

void sink_start(struct sink *sink, int64_t now_ns)
{
	if (sink->running)
		return;
	sink->running = true;
	sink->since_ns = now_ns;
}

int64_t sink_room(struct sink *sink, int64_t now_ns)
{
	return sink->capacity - (sink->written - heard(sink, now_ns));
}

void sink_write(struct sink *sink, int64_t samples, int64_t now_ns)
{
	heard(sink, now_ns);
	sink->written += samples;
	if (sink->underruns > 0)
		sink_start(sink, now_ns);
}

void sink_end(struct sink *sink, int64_t now_ns)
{
	heard(sink, now_ns);
	sink->ended = true;
	if (sink->underruns > 0)
		sink_start(sink, now_ns);
}

int64_t sink_position_ns(struct sink *sink, int64_t now_ns)
{
	if (sink->running && sink->ended)
		return av_rescale_rnd(sink->played, SECOND, sink->rate, AV_ROUND_DOWN) + now_ns - sink->since_ns;
	return av_rescale_rnd(heard(sink, now_ns), SECOND, sink->rate, AV_ROUND_DOWN);
}

struct sound {
	struct source *source;
	AVCodecContext *codec;
	AVPacket *packet;
	AVFrame *samples;
	struct sink sink;
	int64_t began_ns; /* the film's time at which its sound begins */
	bool over;
};

static AVCodecContext *open_codec(const AVStream *stream)
{
	const AVCodec *kind = avcodec_find_decoder(stream->codecpar->codec_id);
	AVCodecContext *codec = kind ? avcodec_alloc_context3(kind) : NULL;

	if (!codec)
		return NULL;
	codec->thread_count = 1;
	if (stream->codecpar->sample_rate <= 0 ||
	    avcodec_parameters_to_context(codec, stream->codecpar) < 0 ||
	    avcodec_open2(codec, kind, NULL) < 0)
		avcodec_free_context(&codec);
	return codec;
}

static void end(struct sound *sound)
{
	sound->over = true;
	sink_end(&sound->sink, clock_now_ns());
}

struct sound *sound_open(struct source *source)
{
	const AVStream *stream = source->audio;
	struct sound *sound = calloc(1, sizeof(*sound));

	if (!sound)
		return NULL;
	sound->source = source;
	sound->packet = av_packet_alloc();
	sound->samples = av_frame_alloc();
	if (!sound->packet || !sound->samples) {
		sound_close(sound);
		return NULL;
	}
	if (stream)
		sound->codec = open_codec(stream);
	sink_open(&sound->sink, sound->codec ? stream->codecpar->sample_rate : 1000);
	if (!sound->codec)
		end(sound);
	else if (stream->start_time != AV_NOPTS_VALUE)
		sound->began_ns = av_rescale_q(stream->start_time, stream->time_base,
					       (AVRational){ 1, SECOND });
	return sound;
}

void sound_close(struct sound *sound)
{
	if (!sound)
		return;
	avcodec_free_context(&sound->codec);
	av_packet_free(&sound->packet);
	av_frame_free(&sound->samples);
	free(sound);
}

/* Takes what the decoder has ready into the sink. */
static void write_decoded(struct sound *sound)
{
	int error;

	while ((error = avcodec_receive_frame(sound->codec, sound->samples)) == 0)
		sink_write(&sound->sink, sound->samples->nb_samples, clock_now_ns());
	if (error == AVERROR_EOF)
		end(sound);
}

void sound_fill(struct sound *sound)
{
	while (!sound->over && sink_room(&sound->sink, clock_now_ns()) > 0) {
		int error = source_next(sound->source, sound->source->audio, sound->packet);

		/* A damaged packet is passed over; the end of the file ends the decoder. */
		avcodec_send_packet(sound->codec, error ? NULL : sound->packet);
		av_packet_unref(sound->packet);
		write_decoded(sound);
	}
}

void sound_start(struct sound *sound)
{
	sink_start(&sound->sink, clock_now_ns());
}

int64_t sound_position_ns(struct sound *sound)
{
	return sound->began_ns + sink_position_ns(&sound->sink, clock_now_ns());
}

int sound_underruns(const struct sound *sound)
{
	return sound->sink.underruns;
}
