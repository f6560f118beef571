/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Band by band; bands.h says why this must be. */
#include "bands.h"

#include <string.h>

#include <libavutil/mem.h>
#include <libavutil/pixdesc.h>

int bands_begin(struct bands *bands, const AVFrame *picture)
{
	for (int plane = 0; plane < BAND_PLANES; plane++) {
		size_t bytes = (size_t)abs(picture->linesize[plane]) * BAND_ROWS;

		av_fast_malloc(&bands->first[plane], &bands->room[plane], bytes);
		if (bytes && !bands->first[plane])
			return AVERROR(ENOMEM);
	}
	return 0;
}

void bands_put(struct bands *bands, const AVFrame *picture, const int *offset, int y, int rows,
	       int height)
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

void bands_free(struct bands *bands)
{
	for (int plane = 0; plane < BAND_PLANES; plane++)
		av_freep(&bands->first[plane]);
}
