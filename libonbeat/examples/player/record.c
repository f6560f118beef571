/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The record of a playing, kept in memory so that writing disturbs nothing, and written at its end.
 */
#include "player.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

static const char *const fates[] = {
	[FATE_PENDING] = "pending",         [FATE_SHOWN] = "shown",   [FATE_SKIPPED] = "skipped",
	[FATE_INTERRUPTED] = "interrupted", [FATE_HIDDEN] = "hidden", [FATE_DAMAGED] = "damaged",
};

int64_t record_add(struct record *record, const struct frame_record *frame)
{
	if (record->count == record->room) {
		int64_t room = record->room ? 2 * record->room : 1024;
		void *frames = realloc(record->frames, (size_t)room * sizeof(*frame));

		if (!frames)
			return -1;
		record->frames = frames;
		record->room = room;
	}
	record->frames[record->count] = *frame;
	return record->count++;
}

int64_t record_count(const struct record *record, enum fate fate)
{
	int64_t count = 0;

	for (int64_t i = 0; i < record->count; i++)
		count += record->frames[i].fate == fate;
	return count;
}

int64_t record_dropped(const struct record *record)
{
	return record->count - record_count(record, FATE_SHOWN) -
	       record_count(record, FATE_PENDING);
}

static double milliseconds(int64_t ns)
{
	return (double)ns / 1e6;
}

/* The mean and the standard deviation of the delay of what was shown. */
static void delay_figures(const struct record *record, double *mean, double *deviation)
{
	int64_t shown = record_count(record, FATE_SHOWN);
	double sum = 0, squares = 0;

	for (int64_t i = 0; i < record->count; i++)
		if (record->frames[i].fate == FATE_SHOWN)
			sum += milliseconds(record->frames[i].delay_ns);
	*mean = shown ? sum / (double)shown : 0;
	for (int64_t i = 0; i < record->count; i++) {
		double off = milliseconds(record->frames[i].delay_ns) - *mean;

		if (record->frames[i].fate == FATE_SHOWN)
			squares += off * off;
	}
	*deviation = shown ? sqrt(squares / (double)shown) : 0;
}

static void write_frame(const struct frame_record *frame, FILE *file)
{
	fprintf(file, "{\"position_ms\":%.3f,\"type\":\"%c\",\"reference\":%s,\"fate\":\"%s\"",
		milliseconds(frame->position_ns), frame->type, frame->reference ? "true" : "false",
		fates[frame->fate]);
	fprintf(file, ",\"decode_ms\":%.3f", milliseconds(frame->decode_ns));
	if (frame->fate == FATE_SHOWN)
		fprintf(file, ",\"delay_ms\":%.3f", milliseconds(frame->delay_ns));
	if (frame->deadline_ns != INT64_MAX)
		fprintf(file, ",\"deadline_ms\":%.3f", milliseconds(frame->deadline_ns));
	if (frame->overrun_ns >= 0)
		fprintf(file, ",\"overrun_ms\":%.3f", milliseconds(frame->overrun_ns));
	fputc('}', file);
}

bool record_write(const struct record *record, const char *rule, int underruns, FILE *file)
{
	double mean, deviation;

	delay_figures(record, &mean, &deviation);
	fprintf(file,
		"{\"rule\":\"%s\",\"frames\":%" PRId64 ",\"shown\":%" PRId64
		",\"dropped\":%" PRId64,
		rule, record->count, record_count(record, FATE_SHOWN), record_dropped(record));
	fprintf(file, ",\"delay_mean_ms\":%.3f,\"delay_deviation_ms\":%.3f,\"underruns\":%d", mean,
		deviation, underruns);
	fputs(",\"frame\":[\n", file);
	for (int64_t i = 0; i < record->count; i++) {
		fputs(i ? ",\n" : "", file);
		write_frame(&record->frames[i], file);
	}
	fputs("\n]}\n", file);
	return fflush(file) == 0 && !ferror(file);
}
