/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The same with true deadlines: each picture gets a random one, below the execution time that
 * pictures take. The film is decoded again and again until a hundred pictures were given up.
 */
#include <onbeat/within.h>

#include "film.h"

static uint64_t seed = 1;
static int64_t longest_ns;
static int violations;

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

	onbeat_within_disable();
	onbeat_try_within_rel (draw(&seed) % longest_ns) {
		error = decoder_decode(decoder, packet, limit, outcome);
	}
	onbeat_handle
		onbeat_when (onbeat_deadline_violation) {
			violations++;
		}
	onbeat_end;
	onbeat_within_enable();
	return error;
}

static void interrupt(const char *name)
{
	struct film *film = film_open(name);
	int64_t began_ns = read_clock(CLOCK_THREAD_CPUTIME_ID);
	int given_up = 0;

	decode_film(film, decode_whole);
	longest_ns = (read_clock(CLOCK_THREAD_CPUTIME_ID) - began_ns) / film->count;
	violations = 0;
	while (given_up < 100)
		given_up += decode_film(film, decode_within).given_up;
	printf("%s: %d given up, %d violations\n", name, given_up, violations);
	/* Every picture given up is a violation: its deadline had passed. */
	check(violations >= given_up);
	film_close(film);
}

int main(void)
{
	interrupt("mpeg2.mpg");
	interrupt("h264.mkv");
	return 0;
}
