/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Pictures are given up at random safe points, thousands of times, and all others stay what they
 * are: in each codec, with frames and with fields, with slices and without. The random numbers are
 * always the same.
 */
#include "film.h"

#define ROUNDS 40

static uint64_t seed = 1;
static int points_left;

static bool at_a_random_point(void *unused)
{
	(void)unused;
	return points_left-- <= 0;
}

static int decode_at_random(struct decoder *decoder, const AVPacket *packet,
			    struct decoder_outcome *outcome)
{
	struct decoder_limit limit = { 0 };

	/*
	 * One in eight whole, one in eight skipped, the others stopped at one of the first 24
	 * points.
	 */
	switch (draw(&seed) % 8) {
	case 0:
		break;
	case 1:
		limit.references_only = true;
		break;
	default:
		limit.stop = at_a_random_point;
		points_left = (int)(draw(&seed) % 24);
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
	return 0;
}
