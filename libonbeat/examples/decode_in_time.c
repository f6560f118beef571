/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A frame is decoded until its time has come; if it is not ready then, the last one is shown again.
 * The decoder checks once a row, so that it may allocate; the memory is released in `finally`.
 *
 * cc -o decode_in_time decode_in_time.c $(pkg-config --cflags --libs onbeat)
 */
#include <onbeat/within.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PIXELS 4096
#define ROW 64

static void decode(unsigned char *picture, int frame)
{
	/* Each tenth frame is far too hard. */
	long rounds = frame % 10 == 9 ? 2000000000L : 20000L;

	for (volatile long i = 0; i < rounds; i++) {
		picture[i % PIXELS] = (unsigned char)i;
		if (i % ROW == 0)
			onbeat_check();
	}
}

int main(void)
{
	static unsigned char shown[PIXELS];
	volatile int repeated = 0;

	for (volatile int frame = 0; frame < 30; frame++) {
		unsigned char *volatile picture = NULL;

		onbeat_try_checked_rel (ONBEAT_MS(40)) {
			picture = malloc(PIXELS);
			if (!picture)
				onbeat_throw(onbeat_exception);
			decode(picture, frame);
			memcpy(shown, picture, PIXELS);
		}
		onbeat_finally {
			free(picture);
		}
		onbeat_handle
			onbeat_when (onbeat_deadline_violation) {
				repeated++;
			}
		onbeat_end;
	}
	printf("30 frames, %d shown again because the next was not ready\n", repeated);
	return repeated >= 3 ? 0 : 1;
}
