/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A window by plain Xlib. Pictures are converted to what nearly every display has, 32 bits a pixel
 * with blue first, and sent with XPutImage, which works on a display of any other machine too.
 */
#include "player.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <X11/Xlib.h>
#include <X11/Xutil.h>
#include <X11/keysym.h>
#include <libswscale/swscale.h>

struct screen {
	Display *display;
	Window window;
	GC graphics;
	Atom closed;
	XImage *image;
	struct SwsContext *converter;
	const char *title;
};

struct screen *screen_open(const char *title)
{
	struct screen *screen = calloc(1, sizeof(*screen));

	if (!screen)
		return NULL;
	screen->title = title;
	screen->display = XOpenDisplay(NULL);
	if (!screen->display) {
		fprintf(stderr, "player: no X display at '%s': set DISPLAY, or use --output none\n",
			XDisplayName(NULL));
		screen_close(screen);
		return NULL;
	}
	return screen;
}

void screen_close(struct screen *screen)
{
	if (!screen)
		return;
	if (screen->image)
		XDestroyImage(screen->image);
	sws_freeContext(screen->converter);
	if (screen->graphics)
		XFreeGC(screen->display, screen->graphics);
	if (screen->display)
		XCloseDisplay(screen->display);
	free(screen);
}

static void open_window(struct screen *screen, int width, int height)
{
	Display *display = screen->display;

	screen->window = XCreateSimpleWindow(display, DefaultRootWindow(display), 0, 0,
					     (unsigned)width, (unsigned)height, 0, 0, 0);
	XStoreName(display, screen->window, screen->title);
	screen->closed = XInternAtom(display, "WM_DELETE_WINDOW", False);
	XSetWMProtocols(display, screen->window, &screen->closed, 1);
	XSelectInput(display, screen->window, KeyPressMask);
	XMapWindow(display, screen->window);
	screen->graphics = XCreateGC(display, screen->window, 0, NULL);
}

/* Makes the image that the display takes; false if it does not take what we make. */
static bool make_image(struct screen *screen, int width, int height)
{
	Display *display = screen->display;
	int number = DefaultScreen(display);
	XImage *image = XCreateImage(display, DefaultVisual(display, number),
				     (unsigned)DefaultDepth(display, number), ZPixmap, 0, NULL,
				     (unsigned)width, (unsigned)height, 32, 0);

	if (!image)
		return false;
	screen->image = image;
	if (image->bits_per_pixel != 32 || image->blue_mask != 0xff) {
		fprintf(stderr, "player: the display has %d bits a pixel, 32 are needed\n",
			image->bits_per_pixel);
		return false;
	}
	image->byte_order = LSBFirst;
	/* XDestroyImage frees it. */
	image->data = malloc((size_t)image->bytes_per_line * (size_t)height);
	return image->data != NULL;
}

bool screen_show(struct screen *screen, const AVFrame *picture)
{
	if (!screen->window) {
		open_window(screen, picture->width, picture->height);
		if (!make_image(screen, picture->width, picture->height))
			return false;
	}
	XImage *image = screen->image;
	uint8_t *to[4] = { (uint8_t *)image->data };
	int strides[4] = { image->bytes_per_line };

	/* A picture of another size than the first is scaled to the window. */
	screen->converter = sws_getCachedContext(screen->converter, picture->width, picture->height,
						 (enum AVPixelFormat)picture->format, image->width,
						 image->height, AV_PIX_FMT_BGRA, SWS_BILINEAR, NULL,
						 NULL, NULL);
	if (!screen->converter)
		return false;
	sws_scale(screen->converter, (const uint8_t *const *)picture->data, picture->linesize, 0,
		  picture->height, to, strides);
	XPutImage(screen->display, screen->window, screen->graphics, image, 0, 0, 0, 0,
		  (unsigned)image->width, (unsigned)image->height);
	/* The picture is on the screen when the server has answered. */
	XSync(screen->display, False);
	return true;
}

bool screen_wants_to_end(struct screen *screen)
{
	XEvent event;

	while (XPending(screen->display)) {
		XNextEvent(screen->display, &event);
		if (event.type == KeyPress && XLookupKeysym(&event.xkey, 0) == XK_q)
			return true;
		if (event.type == ClientMessage &&
		    (Atom)event.xclient.data.l[0] == screen->closed)
			return true;
	}
	return false;
}
