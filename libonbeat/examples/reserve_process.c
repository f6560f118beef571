/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Starts a command, reserves 5 ms in every 20 ms for as long as it runs, for all of its threads
 * together by onbeat's service, or else for each of those that it has, which needs CAP_SYS_NICE;
 * and says what they used.
 *
 * cc -o reserve_process reserve_process.c $(pkg-config --cflags --libs onbeat)
 */
#include <onbeat/reserve.h>

#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int count, char **arguments)
{
	static char *const nothing_given[] = { "sleep", "0.1", NULL };
	struct onbeat_reservation *reservation;
	struct onbeat_reservation_state state;
	int64_t left_ns;
	pid_t child = fork();

	if (child == 0) {
		execvp(count > 1 ? arguments[1] : nothing_given[0], count > 1 ? arguments + 1 : nothing_given);
		_exit(127);
	}
	if (child < 0 || onbeat_reservation_create(&reservation, 5000000, 20000000, 20000000))
		return 1;
	if (onbeat_reservation_share(reservation))
		fprintf(stderr, "each thread by itself: %s\n", onbeat_reservation_reason());
	if (onbeat_reservation_attach_process(reservation, child)) {
		fprintf(stderr, "it runs without a reservation: %s\n", onbeat_reservation_reason());
		waitpid(child, NULL, 0);
		return 77;
	}
	/* Looked at while it can still be asked; WNOWAIT leaves it there. */
	waitid(P_PID, (id_t)child, NULL, WEXITED | WNOWAIT);
	onbeat_reservation_query(reservation, &state);
	printf("used %.3f ms\n", (double)state.consumed_ns / 1e6);
	if (onbeat_reservation_remaining(reservation, &left_ns) == 0)
		printf("%.3f ms are left\n", (double)left_ns / 1e6);
	if (onbeat_reservation_detach_process(reservation, child))
		fprintf(stderr, "%s\n", onbeat_reservation_reason());
	onbeat_reservation_destroy(reservation);
	waitpid(child, NULL, 0);
	return 0;
}
