/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* libavcodec, left at its own safe points: README.md says why that is safe. */
#include "player.h"

#include <stdlib.h>
#include <string.h>

#include <libavutil/mem.h>
#include <libavutil/pixdesc.h>

#define BAND_ROWS 16
#define BAND_PLANES 3

/*
 * Where draw_horiz_band is set, libavcodec's MPEG decoders write each band (a row of macroblocks)
 * of a B picture to the top of the picture's memory, over the band before it, for the callback to
 * fetch it there; its `offset` says so. Here each is copied to its place, and the one that belongs
 * at the top is put aside and put back at the end.
 */
struct bands {
	uint8_t *first[BAND_PLANES];
	unsigned room[BAND_PLANES];
};

struct decoder {
	AVCodecContext *codec;
	AVFrame *ready; /* the first picture that the last packet brought, if it has data */
	struct decoder_limit limit;
	struct decoder_outcome outcome;
	int rows; /* of the picture being decoded: those that are finished */
	int concealment;
	bool bands_at_top; /* of B pictures */
	struct bands bands;
};

/* Makes room for a picture's first band. 0 or AVERROR(ENOMEM). */
static int begin_bands(struct bands *bands, const AVFrame *picture)
{
	for (int plane = 0; plane < BAND_PLANES; plane++) {
		size_t bytes = (size_t)abs(picture->linesize[plane]) * BAND_ROWS;

		av_fast_malloc(&bands->first[plane], &bands->room[plane], bytes);
		if (bytes && !bands->first[plane])
			return AVERROR(ENOMEM);
	}
	return 0;
}

/* A band of `rows` from `y` on is at `offset` in each plane; `height` is the picture's. */
static void put_band(const struct bands *bands, const AVFrame *picture, const int *offset, int y,
		     int rows, int height)
{
	const AVPixFmtDescriptor *format = av_pix_fmt_desc_get(picture->format);

	if (!format || rows > BAND_ROWS)
		return;
	for (int plane = 0; plane < BAND_PLANES && picture->data[plane]; plane++) {
		int shift = plane ? format->log2_chroma_h : 0;
		size_t stride = (size_t)picture->linesize[plane];
		size_t bytes = stride * (size_t)AV_CEIL_RSHIFT(rows, shift);
		uint8_t *top = picture->data[plane];
		uint8_t *place = top + stride * (size_t)(y >> shift);

		if (y == 0) {
			memcpy(bands->first[plane], top, bytes);
		} else if (place != top + offset[plane]) {
			memcpy(place, top + offset[plane], bytes);
			if (y + rows >= height)
				memcpy(top, bands->first[plane],
				       stride * (BAND_ROWS >> shift));
		}
	}
}

/* The codecs whose decoders read skip_frame before each slice, and not only before the first. */
static bool can_stop_between_slices(enum AVCodecID codec)
{
	return codec == AV_CODEC_ID_H264 || codec == AV_CODEC_ID_MPEG1VIDEO ||
	       codec == AV_CODEC_ID_MPEG2VIDEO;
}

static void ask_whether_to_stop(struct decoder *decoder)
{
	AVCodecContext *codec = decoder->codec;

	if (decoder->outcome.reference || decoder->rows >= codec->height || !decoder->limit.stop ||
	    codec->skip_frame == AVDISCARD_NONREF)
		return;
	if (decoder->limit.stop()) {
		codec->skip_frame = AVDISCARD_NONREF;
		codec->error_concealment = 0;
	}
}

static int picture_begins(AVCodecContext *codec, AVFrame *picture, int flags)
{
	struct decoder *decoder = codec->opaque;
	int error;

	decoder->outcome.begun = true;
	decoder->outcome.reference = flags & AV_GET_BUFFER_FLAG_REF;
	decoder->rows = 0;
	if (codec->draw_horiz_band)
		ask_whether_to_stop(decoder);
	error = avcodec_default_get_buffer2(codec, picture, flags);
	return error ? error : begin_bands(&decoder->bands, picture);
}

static void rows_are_finished(AVCodecContext *codec, const AVFrame *picture,
			      int offset[AV_NUM_DATA_POINTERS], int y, int type, int height)
{
	struct decoder *decoder = codec->opaque;

	(void)type;
	/* For a reference, the picture before it is shown here, complete. */
	if (decoder->bands_at_top && !decoder->outcome.reference)
		put_band(&decoder->bands, picture, offset, y, height, codec->height);
	decoder->rows += height;
	ask_whether_to_stop(decoder);
}

struct decoder *decoder_open(const AVStream *stream)
{
	const AVCodec *kind = avcodec_find_decoder(stream->codecpar->codec_id);
	struct decoder *decoder = kind ? calloc(1, sizeof(*decoder)) : NULL;

	if (!decoder)
		return NULL;
	decoder->ready = av_frame_alloc();
	decoder->codec = avcodec_alloc_context3(kind);
	if (!decoder->ready || !decoder->codec ||
	    avcodec_parameters_to_context(decoder->codec, stream->codecpar) < 0)
		goto failed;
	decoder->codec->thread_count = 1;
	decoder->codec->thread_type = FF_THREAD_SLICE;
	decoder->codec->opaque = decoder;
	decoder->codec->get_buffer2 = picture_begins;
	if (can_stop_between_slices(kind->id))
		decoder->codec->draw_horiz_band = rows_are_finished;
	decoder->bands_at_top = kind->id != AV_CODEC_ID_H264;
	if (avcodec_open2(decoder->codec, kind, NULL) < 0)
		goto failed;
	decoder->concealment = decoder->codec->error_concealment;
	return decoder;
failed:
	decoder_close(decoder);
	return NULL;
}

void decoder_close(struct decoder *decoder)
{
	if (!decoder)
		return;
	avcodec_free_context(&decoder->codec);
	av_frame_free(&decoder->ready);
	for (int plane = 0; plane < BAND_PLANES; plane++)
		av_freep(&decoder->bands.first[plane]);
	free(decoder);
}

int decoder_decode(struct decoder *decoder, const AVPacket *packet, struct decoder_limit limit,
		   struct decoder_outcome *outcome)
{
	AVCodecContext *codec = decoder->codec;
	int error;

	decoder->limit = limit;
	/* Until the decoder says otherwise, it may be a reference, and is not given up. */
	decoder->outcome = (struct decoder_outcome){ .reference = true };
	codec->skip_frame = limit.references_only ? AVDISCARD_NONREF : AVDISCARD_DEFAULT;
	error = avcodec_send_packet(codec, packet);
	if (!error) {
		error = avcodec_receive_frame(codec, decoder->ready);
		if (error == AVERROR(EAGAIN) || error == AVERROR_EOF)
			error = 0;
	}
	*outcome = decoder->outcome;
	outcome->given_up = codec->skip_frame == AVDISCARD_NONREF &&
			    (!outcome->begun ||
			     (!outcome->reference && decoder->rows < codec->height));
	codec->skip_frame = AVDISCARD_DEFAULT;
	codec->error_concealment = decoder->concealment;
	return error;
}

int decoder_take(struct decoder *decoder, AVFrame *picture)
{
	if (!decoder->ready->buf[0])
		return avcodec_receive_frame(decoder->codec, picture);
	av_frame_unref(picture);
	av_frame_move_ref(picture, decoder->ready);
	return 0;
}
