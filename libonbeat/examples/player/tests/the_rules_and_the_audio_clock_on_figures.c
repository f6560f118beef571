/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The two frame-dropping rules (sections 8.1 and 8.2 of the paper), and the audio clock. */
#include "../../../tests/check.h"
#include "../player.h"

#define FRAME (40 * MS)
#define DAY (INT64_C(86400) * 1000 * MS)

static void both_rules_drop_as_the_paper_says(void)
{
	check(!rule_drops_in_advance(0, FRAME, 0));
	check(!rule_drops_in_advance(100 * MS, FRAME, 0));
	check(rule_drops_in_advance(101 * MS, FRAME, 0));
	/* The second drop in a row needs 140 ms, the third 180. */
	check(!rule_drops_in_advance(139 * MS, FRAME, 1));
	check(rule_drops_in_advance(141 * MS, FRAME, 1));
	check(!rule_drops_in_advance(179 * MS, FRAME, 2));

	check(rule_deadline_ns(0, FRAME) == 37 * MS);
	check(rule_deadline_ns(100 * MS, FRAME) == 36 * MS);
	check(rule_deadline_ns(-200 * MS, FRAME) == 39 * MS);
	check(rule_deadline_ns(4000 * MS, FRAME) < 0);
}

static void the_audio_clock_stands_still_without_sound(void)
{
	struct sink sink;

	sink_open(&sink, 48000);
	check(sink_room(&sink, 0) == 24000);
	sink_write(&sink, 24000, 5 * MS);
	check(sink_room(&sink, 6 * MS) == 0);
	check(sink_position_ns(&sink, 100 * MS) == 0);

	sink_start(&sink, 1000 * MS);
	check(sink_position_ns(&sink, 1250 * MS) == 250 * MS);
	check(sink_room(&sink, 1250 * MS) == 12000);
	check(sink.underruns == 0);

	/* It holds half a second, and stands there when that is over. */
	check(sink_position_ns(&sink, 1800 * MS) == 500 * MS);
	check(sink_position_ns(&sink, 1900 * MS) == 500 * MS);
	check(sink.underruns == 1);

	/* Filled again, it goes on from there. */
	sink_write(&sink, 4800, 2000 * MS);
	check(sink_position_ns(&sink, 2050 * MS) == 550 * MS);
	check(sink.underruns == 1);

	/* When the sound is over, the time is not; and a long film loses nothing. */
	sink_end(&sink, 2060 * MS);
	check(sink_position_ns(&sink, 3000 * MS) == 1500 * MS);
	check(sink_position_ns(&sink, 2000 * MS + 30 * DAY) == 500 * MS + 30 * DAY);

	/* One that ends while it stands still goes on; a silent film's goes from its start. */
	sink_open(&sink, 44100);
	sink_start(&sink, 0);
	check(sink_position_ns(&sink, 10 * MS) == 0);
	sink_end(&sink, 20 * MS);
	check(sink_position_ns(&sink, 30 * MS) == 10 * MS);
	sink_open(&sink, 1000);
	sink_end(&sink, 0);
	check(sink_position_ns(&sink, 10 * MS) == 0);
	sink_start(&sink, 20 * MS);
	check(sink_position_ns(&sink, 30 * MS) == 10 * MS);
}

int main(void)
{
	run_test(both_rules_drop_as_the_paper_says);
	run_test(the_audio_clock_stands_still_without_sound);
	return 0;
}
