/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Sums over windows of time: of the tasks in the present one, and in the one before.
 *
 * A window is emptied before it begins, and no more is ever taken off it than it holds, so CPUs
 * that count at the same time do no harm. Only if no CPU counted in the window before is it emptied
 * at its begin: what another CPU counts at that moment may then be missing in it.
 */
#ifndef ONBEAT_WINDOWS_H
#define ONBEAT_WINDOWS_H

#include "policy.h"

/*
 * The present one, the one before, the one to come, and one more, as a power of two bounds an index
 * in BPF.
 */
#define WINDOWS 4

/* The sum of a window, by its number. */
static inline u64 *windows_sum(u64 *sums, u64 number)
{
	return &sums[number & (WINDOWS - 1)];
}

/*
 * The number of the window that is now, from one; `present` is that of the last one that there was,
 * or zero.
 */
static inline u64 windows_at(u64 *present, u64 *sums, u64 length_ns, u64 now_ns)
{
	u64 number = now_ns / length_ns + 1;

	if (number > *present) {
		if (number > *present + 1) {
			*windows_sum(sums, number) = 0;
			*windows_sum(sums, number - 1) = 0;
		}
		*windows_sum(sums, number + 1) = 0;
		*present = number;
	}
	return number;
}

/*
 * Takes so much off a window if it is the present one; unless another CPU counts at that very
 * moment.
 */
static inline void windows_take_off(u64 present, u64 *sums, u64 number, u64 amount)
{
	u64 *sum = windows_sum(sums, number), was = *sum;

	if (number >= present)
		policy_replace(sum, was, policy_minus(was, amount));
}

#endif
