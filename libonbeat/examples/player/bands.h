/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Bands of a picture, put where they belong.
 *
 * Where draw_horiz_band is set, libavcodec's MPEG decoders write each band (a row of macroblocks)
 * of a B picture to the top of the picture's memory, over the band before it, for the callback to
 * fetch it there; its `offset` says so. Here each is copied to its place, and the one that belongs
 * at the top, which the others would destroy, is put aside and put back at the end.
 */
#ifndef PLAYER_BANDS_H
#define PLAYER_BANDS_H

#include <libavutil/frame.h>

#define BAND_ROWS 16
#define BAND_PLANES 3

struct bands {
	uint8_t *first[BAND_PLANES];
	unsigned room[BAND_PLANES];
};

/* Makes room for a picture's first band. 0 or AVERROR(ENOMEM). */
int bands_begin(struct bands *bands, const AVFrame *picture);
/* A band of `rows` from `y` on is at `offset` in each plane; `height` is the picture's. */
void bands_put(struct bands *bands, const AVFrame *picture, const int *offset, int y, int rows,
	       int height);
void bands_free(struct bands *bands);

#endif
