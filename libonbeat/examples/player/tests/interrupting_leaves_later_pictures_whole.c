/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Pictures are given up at random safe points, thousands of times, and all others have the bits
 * that libavcodec alone gives them: in each codec, with frames and with fields, with slices and
 * without; then by deadlines, each below the execution time that pictures take. The random numbers
 * are always the same.
 */
#include <onbeat/within.h>

#include <libavutil/crc.h>

#include "../../../tests/check.h"
#include "../player.h"

#define ROUNDS 40
#define MAX_FRAMES 1000

struct film {
	struct source *source;
	AVPacket *packets[MAX_FRAMES];
	int count;
	uint32_t hashes[MAX_FRAMES]; /* of the picture of each packet, as libavcodec decodes it */
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

/* All pictures of the test are 4:2:0 with eight bits. */
static uint32_t hash_picture(const AVFrame *picture)
{
	uint32_t hash = 0;

	check(picture->format == AV_PIX_FMT_YUV420P);
	for (int plane = 0; plane < 3; plane++) {
		int shift = plane > 0;

		for (int y = 0; y < picture->height >> shift; y++)
			hash = av_crc(av_crc_get_table(AV_CRC_32_IEEE), hash,
				      picture->data[plane] + y * picture->linesize[plane],
				      (size_t)(picture->width >> shift));
	}
	return hash;
}

/* Decodes the film by libavcodec alone, with nothing of the player's in between. */
static void decode_plainly(struct film *film)
{
	const AVStream *stream = film->source->video;
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
static struct tally decode_film(struct film *film, decode_one *decode)
{
	struct decoder *decoder = decoder_open(film->source->video);
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

static int decode_whole(struct decoder *decoder, const AVPacket *packet,
			       struct decoder_outcome *outcome)
{
	return decoder_decode(decoder, packet, (struct decoder_limit){ 0 }, outcome);
}

static struct film *film_open(const char *name)
{
	const char *folder = getenv("PLAYER_CLIPS");
	struct film *film = calloc(1, sizeof(*film));
	AVPacket *packet = av_packet_alloc();
	char path[4096];

	check(film && packet && folder);
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	film->source = source_open(path);
	check(film->source);
	while (source_next(film->source, film->source->video, packet) == 0) {
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

static void film_close(struct film *film)
{
	for (int i = 0; i < film->count; i++)
		av_packet_free(&film->packets[i]);
	source_close(film->source);
	free(film);
}

static unsigned seed = 1;
static int points_left;
static int64_t longest_ns;
static int violations;

static bool at_a_random_point(void)
{
	return points_left-- <= 0;
}

static int decode_at_random(struct decoder *decoder, const AVPacket *packet,
			    struct decoder_outcome *outcome)
{
	struct decoder_limit limit = { 0 };

	/* One in eight whole, one in eight skipped, the others at one of the first 24 points. */
	switch (rand_r(&seed) % 8) {
	case 0:
		break;
	case 1:
		limit.references_only = true;
		break;
	default:
		limit.stop = at_a_random_point;
		points_left = rand_r(&seed) % 24;
	}
	return decoder_decode(decoder, packet, limit, outcome);
}

static struct tally interrupt(const char *name)
{
	struct film *film = film_open(name);
	struct tally sum = { 0 };

	for (int round = 0; round < ROUNDS; round++) {
		struct tally tally = decode_film(film, decode_at_random);

		sum.given_up += tally.given_up;
		sum.skipped += tally.skipped;
		sum.compared += tally.compared;
	}
	printf("%s: %d given up, %d skipped, %d compared\n", name, sum.given_up, sum.skipped,
	       sum.compared);
	check(sum.skipped > ROUNDS && sum.compared > ROUNDS);
	film_close(film);
	return sum;
}

static bool deadline_has_passed(void)
{
	return onbeat_remaining() <= 0;
}

static int decode_within(struct decoder *decoder, const AVPacket *packet,
			 struct decoder_outcome *outcome)
{
	const struct decoder_limit limit = { .stop = deadline_has_passed };
	volatile int error = -1;

	onbeat_try_checked_rel (rand_r(&seed) % longest_ns) {
		error = decoder_decode(decoder, packet, limit, outcome);
	}
	onbeat_handle
		onbeat_when (onbeat_deadline_violation) {
			violations++;
		}
	onbeat_end;
	return error;
}

/* Again and again, until a hundred pictures were given up. */
static void interrupt_by_deadlines(const char *name)
{
	struct film *film = film_open(name);
	int64_t began_ns = cpu_now_ns();
	int given_up = 0;

	decode_film(film, decode_whole);
	longest_ns = (cpu_now_ns() - began_ns) / film->count;
	violations = 0;
	while (given_up < 100)
		given_up += decode_film(film, decode_within).given_up;
	/* Every picture given up is a violation: its deadline had passed. */
	check(violations >= given_up);
	film_close(film);
}

int main(void)
{
	int given_up = 0;

	given_up += interrupt("mpeg2.mpg").given_up;
	given_up += interrupt("mpeg2-interlaced.mpg").given_up;
	given_up += interrupt("h264.mkv").given_up;
	given_up += interrupt("h264-interlaced.mkv").given_up;
	check(given_up > 2000);
	/* Without a second slice there is no point in the middle. */
	check(interrupt("h264-single.mp4").given_up == 0);
	check(interrupt("mpeg4.mp4").given_up == 0);
	interrupt_by_deadlines("mpeg2.mpg");
	interrupt_by_deadlines("h264.mkv");
	return 0;
}
