/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Shared by the tests of interrupted decoding: a film in memory, decoded once as it should be, and
 * again with every interruption that a test can think of; every picture that claims to be whole is
 * compared.
 */
#ifndef PLAYER_TESTS_FILM_H
#define PLAYER_TESTS_FILM_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <libavutil/pixdesc.h>

#include "../../../tests/check.h"
#include "../player.h"

#define MAX_FRAMES 1000

struct film {
	struct source *source;
	AVPacket *packets[MAX_FRAMES];
	int count;
	uint64_t hashes[MAX_FRAMES]; /* of the picture of each packet, as libavcodec decodes it */
};

/* How a packet is decoded in a test. */
typedef int decode_one(struct decoder *decoder, const AVPacket *packet,
		       struct decoder_outcome *outcome);

/* The counts of a decoding of the whole film. */
struct tally {
	int given_up;  /* after they had begun */
	int skipped;   /* before */
	int compared;  /* whole pictures, the same as without interruption */
};

static inline uint32_t draw(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(*seed >> 33);
}

/* Eight bytes at a time: the films' widths allow it. */
static inline uint64_t hash_bytes(uint64_t hash, const uint8_t *bytes, int count)
{
	for (int i = 0; i + 8 <= count; i += 8) {
		uint64_t word;

		memcpy(&word, bytes + i, sizeof(word));
		hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
		hash ^= hash >> 29;
	}
	return hash;
}

/* All pictures of the test are 4:2:0 with eight bits. */
static inline uint64_t hash_picture(const AVFrame *picture)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);

	check(picture->format == AV_PIX_FMT_YUV420P && picture->width % 16 == 0);
	for (int plane = 0; plane < 3; plane++) {
		int shift = plane > 0;

		for (int y = 0; y < picture->height >> shift; y++)
			hash = hash_bytes(hash, picture->data[plane] + y * picture->linesize[plane],
					  picture->width >> shift);
	}
	return hash;
}

/* Decodes the film by libavcodec alone, with nothing of the player's in between. */
static inline void decode_plainly(struct film *film)
{
	const AVStream *stream = source_video(film->source);
	const AVCodec *kind = avcodec_find_decoder(stream->codecpar->codec_id);
	AVCodecContext *codec = avcodec_alloc_context3(kind);
	AVFrame *picture = av_frame_alloc();
	int pictures = 0;

	check(codec && picture && avcodec_parameters_to_context(codec, stream->codecpar) >= 0);
	codec->thread_count = 1;
	check(avcodec_open2(codec, kind, NULL) == 0);
	for (int i = 0; i <= film->count; i++) {
		check(avcodec_send_packet(codec, i < film->count ? film->packets[i] : NULL) == 0);
		while (avcodec_receive_frame(codec, picture) == 0) {
			check(picture->pts >= 0 && picture->pts < film->count);
			film->hashes[picture->pts] = hash_picture(picture);
			pictures++;
		}
	}
	check(pictures == film->count);
	av_frame_free(&picture);
	avcodec_free_context(&codec);
}

/* Decodes the film with `decode`, and checks each picture that came out whole. */
static inline struct tally decode_film(struct film *film, decode_one *decode)
{
	struct decoder *decoder = decoder_open(source_video(film->source));
	AVFrame *picture = av_frame_alloc();
	bool whole[MAX_FRAMES] = { false }, seen[MAX_FRAMES] = { false };
	struct tally tally = { 0 };

	check(decoder && picture);
	for (int i = 0; i <= film->count; i++) {
		struct decoder_outcome outcome;

		if (i < film->count) {
			check(decode(decoder, film->packets[i], &outcome) == 0);
			whole[i] = !outcome.given_up;
			if (outcome.given_up) {
				check(!outcome.begun || !outcome.reference);
				tally.given_up += outcome.begun;
				tally.skipped += !outcome.begun;
			}
		} else {
			check(decoder_decode(decoder, NULL, (struct decoder_limit){ 0 },
					     &outcome) == 0);
		}
		while (decoder_take(decoder, picture) == 0) {
			int64_t number = picture->pts;

			check(number >= 0 && number < film->count && !seen[number]);
			seen[number] = true;
			if (whole[number]) {
				check(film->hashes[number] == hash_picture(picture));
				tally.compared++;
			}
		}
	}
	for (int i = 0; i < film->count; i++)
		check(seen[i] || !whole[i]);
	av_frame_free(&picture);
	decoder_close(decoder);
	return tally;
}

static inline int decode_whole(struct decoder *decoder, const AVPacket *packet,
			       struct decoder_outcome *outcome)
{
	return decoder_decode(decoder, packet, (struct decoder_limit){ 0 }, outcome);
}

static inline struct film *film_open(const char *name)
{
	const char *folder = getenv("PLAYER_CLIPS");
	struct film *film = calloc(1, sizeof(*film));
	AVPacket *packet = av_packet_alloc();
	char path[4096];

	check(film && packet && folder);
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	film->source = source_open(path);
	check(film->source);
	while (source_next(film->source, source_video(film->source), packet) == 0) {
		check(film->count < MAX_FRAMES);
		packet->pts = film->count;
		film->packets[film->count++] = av_packet_clone(packet);
		av_packet_unref(packet);
	}
	av_packet_free(&packet);
	decode_plainly(film);
	check(decode_film(film, decode_whole).compared == film->count);
	return film;
}

static inline void film_close(struct film *film)
{
	for (int i = 0; i < film->count; i++)
		av_packet_free(&film->packets[i]);
	source_close(film->source);
	free(film);
}

#endif
