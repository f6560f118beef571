/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The audio clock; player.h says what it imitates. */
#include "player.h"

#define SECOND INT64_C(1000000000)

/* Neither product may overflow, however long the film. */
static int64_t scale(int64_t value, int64_t by, int64_t over)
{
	return value / over * by + value % over * by / over;
}

/* The samples heard until now; stops the sink if its buffer has run empty. */
static int64_t heard(struct sink *sink, int64_t now_ns)
{
	int64_t samples = sink->played;

	if (!sink->running)
		return samples;
	samples += scale(now_ns - sink->since_ns, sink->rate, SECOND);
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
		return scale(sink->played, SECOND, sink->rate) + now_ns - sink->since_ns;
	return scale(heard(sink, now_ns), SECOND, sink->rate);
}
