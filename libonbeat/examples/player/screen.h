/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Where pictures are shown: a window of the X Window System, or nowhere. */
#ifndef PLAYER_SCREEN_H
#define PLAYER_SCREEN_H

#include <stdbool.h>

#include <libavutil/frame.h>

struct screen;

/* A window on $DISPLAY. NULL, with a message on standard error, if there is none. */
struct screen *screen_open(const char *title);
void screen_close(struct screen *screen);

/* Shows a picture; the window takes the size of the first. False if that failed. */
bool screen_show(struct screen *screen, const AVFrame *picture);
/* Whether the user wants to end: `q`, or the window was closed. */
bool screen_wants_to_end(struct screen *screen);

#endif
