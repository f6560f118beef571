/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Pictures are given up at random safe points, thousands of times, and all others stay what they
 * are: in each codec, with frames and with fields, with slices and without; then by deadlines,
 * each below the execution time that pictures take. The random numbers are always the same.
 */
#include <onbeat/within.h>

#include "film.h"

#define ROUNDS 40

static uint64_t seed = 1;
static int points_left;
static int64_t longest_ns;
static int violations;

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

static bool deadline_has_passed(void *unused)
{
	(void)unused;
	return onbeat_remaining() <= 0;
}

static int decode_within(struct decoder *decoder, const AVPacket *packet,
			 struct decoder_outcome *outcome)
{
	const struct decoder_limit limit = { .stop = deadline_has_passed };
	volatile int error = -1;

	onbeat_try_checked_rel (draw(&seed) % longest_ns) {
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
	int64_t began_ns = read_clock(CLOCK_THREAD_CPUTIME_ID);
	int given_up = 0;

	decode_film(film, decode_whole);
	longest_ns = (read_clock(CLOCK_THREAD_CPUTIME_ID) - began_ns) / film->count;
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
