/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A video decoder that can be told, in the middle of a picture, to give that picture up.
 *
 * Why not simply jump out of the decoder, as a timing exception would? Because what is jumped over
 * is libavcodec: the packet it was working on stays in its hands and is decoded again, pictures it
 * had referenced are never released, and a jump out of malloc leaves a lock held. So nothing jumps
 * over it. It is left the way it offers itself:
 *
 * - libavcodec calls back when it wants memory for a picture (get_buffer2) and after each row of
 *   macroblocks (draw_horiz_band). There `stop` is asked whether the picture is to be given up.
 * - get_buffer2 says whether the picture will be kept as a reference. Until then nothing is given
 *   up, and a reference never is: the caller's deadline passes, the picture is finished.
 * - To give up, `skip_frame` is set to AVDISCARD_NONREF. The decoders read it before each slice,
 *   and pass over the slices of a picture that nothing refers to. They come out by their usual
 *   return, with everything released; what they keep (references, order of output) does not depend
 *   on those slices.
 * - `error_concealment` is off meanwhile, or the decoder would spend the time saved on painting
 *   over what is missing.
 *
 * So a picture is given up within one slice: in MPEG-2, a row of macroblocks; in H.264, what the
 * encoder chose (discs and broadcasts have at least four to a picture). A picture of a single
 * slice, and any MPEG-4 Part 2 one, is given up before its first slice or not at all.
 *
 * One decoder belongs to one thread, and decodes in that thread.
 */
#ifndef PLAYER_DECODER_H
#define PLAYER_DECODER_H

#include <stdbool.h>

#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>

struct decoder;

/* The parts of a packet's decoding to leave out. */
struct decoder_limit {
	bool references_only;         /* skip it altogether, unless it is a reference */
	bool (*stop)(void *argument); /* asked at each safe point; NULL: never stop */
	void *argument;
};

/* The outcome of a packet's decoding. */
struct decoder_outcome {
	bool begun;     /* the decoder asked for the picture's memory */
	bool reference; /* as the decoder said then; without meaning if not begun */
	bool given_up;  /* what came out of it, if anything, is not a whole picture */
};

/* Opens a decoder for the stream. NULL if there is none for its codec, or it cannot be opened. */
struct decoder *decoder_open(const AVStream *stream);
void decoder_close(struct decoder *decoder);

/*
 * Decodes a packet, or ends the stream if it is NULL. The pictures carry the `pts` of their
 * packets. 0, or a negative AVERROR: the packet was damaged, and decoding may go on.
 */
int decoder_decode(struct decoder *decoder, const AVPacket *packet, struct decoder_limit limit,
		   struct decoder_outcome *outcome);

/* The next picture in the order of presentation. 0, AVERROR(EAGAIN) or AVERROR_EOF. */
int decoder_take(struct decoder *decoder, AVFrame *picture);

#endif
