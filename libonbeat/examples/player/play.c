/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The loop of the player: sound first, then one packet of video, then what it brought is shown in
 * time.
 *
 * One thread does it all, as in the player of the paper. A frame's number in the record goes
 * through the decoder in place of its time stamp, so that what comes out, in another order, is
 * known again.
 */
#include "player.h"

#include <onbeat/within.h>

#define POSITION_UNKNOWN INT64_MIN
#define MS INT64_C(1000000)

bool rule_drops_in_advance(int64_t delay_ns, int64_t frame_time_ns, int dropped_in_burst)
{
	return delay_ns > 100 * MS + dropped_in_burst * frame_time_ns;
}

int64_t rule_deadline_ns(int64_t delay_ns, int64_t frame_time_ns)
{
	return frame_time_ns - 3 * MS - delay_ns / 100;
}

struct playing {
	struct play *play;
	struct sound *sound;
	struct decoder *decoder;
	AVPacket *packet;
	AVFrame *picture;
	int64_t frame_time_ns;
	int64_t due_ns; /* the position of the frame that was due last */
	int burst;      /* frames dropped one after the other by the heuristic */
	bool begun;
};

static bool deadline_has_passed(void)
{
	return onbeat_remaining() <= 0;
}

/*
 * Decodes the packet within a deadline. The block is a checked one, so that the decoder is neither
 * left in its middle nor, if the deadline is over at once, never called. The exception is thrown
 * when it has returned, and it returns early by asking for the time that remains: README.md says
 * where, and why it must be so.
 */
static int decode_within(struct playing *playing, struct frame_record *frame,
			 struct decoder_outcome *outcome)
{
	const struct decoder_limit limit = { .stop = deadline_has_passed };
	volatile int error = 0;

	onbeat_try_checked_rel (frame->deadline_ns) {
		error = decoder_decode(playing->decoder, playing->packet, limit, outcome);
	}
	onbeat_handle
		onbeat_when (onbeat_deadline_violation) {
			frame->overrun_ns = onbeat_delay();
		}
	onbeat_end;
	return error;
}

/* Shows a picture at its time, or at once if that has passed. False if the screen failed. */
static bool show(struct playing *playing, struct frame_record *frame)
{
	struct play *play = playing->play;
	int64_t early_ns;

	if (!playing->begun) {
		playing->begun = true;
		sound_start(playing->sound);
	}
	while ((early_ns = frame->position_ns - sound_position_ns(playing->sound)) > 0 &&
	       !*play->ended) {
		struct timespec wait = { 0, early_ns < 50000000 ? early_ns : 50000000 };

		/* The sound may stand still: it moves on only when it is filled. */
		sound_fill(playing->sound);
		nanosleep(&wait, NULL);
	}
	if (play->screen && !screen_show(play->screen, playing->picture))
		return false;
	frame->delay_ns = sound_position_ns(playing->sound) - frame->position_ns;
	frame->fate = FATE_SHOWN;
	return true;
}

/* It is this frame's turn. One without a time stamp follows the last one. */
static void is_due(struct playing *playing, struct frame_record *frame)
{
	if (frame->position_ns == POSITION_UNKNOWN)
		frame->position_ns = playing->due_ns + playing->frame_time_ns;
	if (frame->position_ns > playing->due_ns)
		playing->due_ns = frame->position_ns;
}

/* Takes what the decoder has ready and shows it, or hides it. False if the screen failed. */
static bool present(struct playing *playing, bool hide)
{
	struct record *record = playing->play->record;
	bool fine = true;

	while (fine && decoder_take(playing->decoder, playing->picture) == 0) {
		int64_t number = playing->picture->pts;

		if (number >= 0 && number < record->count) {
			struct frame_record *frame = &record->frames[number];

			frame->type = av_get_picture_type_char(playing->picture->pict_type);
			is_due(playing, frame);
			if (frame->fate == FATE_PENDING && hide)
				frame->fate = FATE_HIDDEN;
			else if (frame->fate == FATE_PENDING)
				fine = show(playing, frame);
		}
		av_frame_unref(playing->picture);
	}
	return fine;
}

/* Adds the packet's frame to the record; NULL if there is no memory. */
static struct frame_record *add_frame(struct playing *playing)
{
	struct frame_record frame = {
		.position_ns = POSITION_UNKNOWN,
		.deadline_ns = INT64_MAX,
		.overrun_ns = -1,
		.type = '?',
	};
	AVPacket *packet = playing->packet;
	int64_t number;

	if (packet->pts != AV_NOPTS_VALUE)
		frame.position_ns = av_rescale_q(packet->pts,
						 playing->play->source->video->time_base,
						 (AVRational){ 1, 1000000000 });
	number = record_add(playing->play->record, &frame);
	packet->pts = number;
	return number < 0 ? NULL : &playing->play->record->frames[number];
}

/* Decodes the packet as the rule wants it; tells whether what comes out is to be hidden. */
static bool decode(struct playing *playing, struct frame_record *frame)
{
	int64_t began_ns = clock_now_ns();
	int64_t delay_ns = playing->begun ? sound_position_ns(playing->sound) - playing->due_ns : 0;
	struct decoder_limit limit = { 0 };
	struct decoder_outcome outcome;
	int error;

	switch (playing->play->rule) {
	case RULE_DEADLINE:
		frame->deadline_ns = rule_deadline_ns(delay_ns, playing->frame_time_ns);
		error = decode_within(playing, frame, &outcome);
		break;
	case RULE_HEURISTIC:
		limit.references_only =
			rule_drops_in_advance(delay_ns, playing->frame_time_ns, playing->burst);
		playing->burst = limit.references_only ? playing->burst + 1 : 0;
		error = decoder_decode(playing->decoder, playing->packet, limit, &outcome);
		break;
	case RULE_NONE:
	default:
		error = decoder_decode(playing->decoder, playing->packet, limit, &outcome);
		break;
	}
	frame->decode_ns = clock_now_ns() - began_ns;
	frame->reference = outcome.begun && outcome.reference;
	if (error)
		frame->fate = FATE_DAMAGED;
	else if (outcome.given_up)
		frame->fate = outcome.begun ? FATE_INTERRUPTED : FATE_SKIPPED;
	if (frame->fate != FATE_PENDING)
		is_due(playing, frame);
	return limit.references_only;
}

static int play_all(struct playing *playing)
{
	struct play *play = playing->play;
	struct decoder_outcome outcome;

	while (!*play->ended && !(play->screen && screen_wants_to_end(play->screen))) {
		struct frame_record *frame;
		bool hide;

		sound_fill(playing->sound);
		if (source_next(play->source, play->source->video, playing->packet) < 0) {
			decoder_decode(playing->decoder, NULL, (struct decoder_limit){ 0 },
				       &outcome);
			return present(playing, false) ? 0 : -1;
		}
		frame = add_frame(playing);
		if (!frame) {
			fprintf(stderr, "player: no memory for the record\n");
			return -1;
		}
		hide = decode(playing, frame);
		av_packet_unref(playing->packet);
		if (!present(playing, hide))
			return -1;
	}
	return 0;
}

int play(struct play *play)
{
	struct playing playing = { .play = play };
	int result = -1;

	playing.frame_time_ns = source_frame_time_ns(play->source);
	playing.due_ns = -playing.frame_time_ns;
	playing.sound = sound_open(play->source);
	playing.decoder = decoder_open(play->source->video);
	playing.packet = av_packet_alloc();
	playing.picture = av_frame_alloc();
	if (!playing.decoder)
		fprintf(stderr, "player: no decoder for this video\n");
	else if (!playing.sound || !playing.packet || !playing.picture)
		fprintf(stderr, "player: no memory\n");
	else
		result = play_all(&playing);
	if (playing.sound)
		play->underruns = sound_underruns(playing.sound);
	sound_close(playing.sound);
	decoder_close(playing.decoder);
	av_packet_free(&playing.packet);
	av_frame_free(&playing.picture);
	return result;
}
