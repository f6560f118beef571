/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Exceptions of one's own: kinds below others, a value for the handler, and throwing on.
 *
 * cc -o own_exceptions own_exceptions.c $(pkg-config --cflags --libs onbeat)
 */
#include <onbeat/within.h>

#include <stdio.h>

static ONBEAT_DEFINE_EXCEPTION(stream_error, onbeat_exception);
static ONBEAT_DEFINE_EXCEPTION(truncated, stream_error);

static void parse(int length)
{
	static int missing;

	if (length < 188) {
		missing = 188 - length;
		onbeat_throw_value(truncated, &missing);
	}
}

int main(void)
{
	volatile int handled = 0;

	onbeat_try {
		onbeat_try {
			parse(100);
		}
		onbeat_handle
			onbeat_when (stream_error) {
				printf("%s: %d bytes missing\n", onbeat_caught()->type->name,
				       *(int *)onbeat_caught()->value);
				onbeat_rethrow();
			}
		onbeat_end;
	}
	onbeat_handle
		onbeat_when (truncated) {
			handled++;
		}
	onbeat_end;
	return handled == 1 ? 0 : 1;
}
