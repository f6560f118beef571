/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * An anytime algorithm: the mandatory part always, then refinements for as long as there is time.
 * The result is either that of a whole refinement or that of the one before it.
 *
 * cc -o anytime anytime.c $(pkg-config --cflags --libs onbeat)
 */
#include <onbeat/within.h>

#include <stdio.h>

static double refine(double x, long terms)
{
	double sum = 0;

	for (long k = 0; k < terms; k++)
		sum += (k % 2 ? -1.0 : 1.0) / (double)(2 * k + 1);
	return x + 4 * sum - x;
}

int main(void)
{
	volatile double result = refine(3, 10);
	volatile int refinements = 0;

	onbeat_try_within_wcet (ONBEAT_MS(20)) {
		for (long terms = 20;; terms *= 2) {
			double better = refine(result, terms);

			onbeat_within_disable();
			result = better;
			refinements++;
			onbeat_within_enable();
		}
	}
	onbeat_handle
		onbeat_when (onbeat_wcet_violation) {
			printf("told %.0f us after the limit\n", (double)onbeat_delay() / 1e3);
		}
	onbeat_end;
	printf("%f after %d refinements\n", result, refinements);
	return result > 3 && result < 4 ? 0 : 1;
}
