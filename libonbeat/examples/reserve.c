/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A thread reserves 2 ms in every 20 ms for itself, works, takes twice of that if it is free, and
 * asks what it used. It may not use more: the reservation is hard. Needs CAP_SYS_NICE.
 *
 * cc -o reserve reserve.c $(pkg-config --cflags --libs onbeat)
 */
#include <onbeat/reserve.h>

#include <stdio.h>
#include <unistd.h>

int main(void)
{
	struct onbeat_reservation *reservation;
	struct onbeat_reservation_state state;
	int free_permille;

	if (onbeat_reservation_create(&reservation, 2000000, 20000000, 20000000) ||
	    onbeat_reservation_set_hard(reservation, 1) || onbeat_reservation_attach(reservation, 0)) {
		fprintf(stderr, "%s\n", onbeat_reservation_reason());
		return 77;
	}
	if (onbeat_reservation_available(&free_permille) == 0 && free_permille > 100 &&
	    onbeat_reservation_change(reservation, 4000000, 20000000, 20000000))
		fprintf(stderr, "goes on with 2 ms: %s\n", onbeat_reservation_reason());
	for (int job = 0; job < 10; job++) {
		for (volatile int i = 0; i < 100000; i++)
			;
		usleep(20000);
	}
	if (onbeat_reservation_detach(reservation, 0))
		fprintf(stderr, "%s\n", onbeat_reservation_reason());
	onbeat_reservation_query(reservation, &state);
	printf("used %.3f ms in ten jobs\n", (double)state.consumed_ns / 1e6);
	onbeat_reservation_destroy(reservation);
	return 0;
}
