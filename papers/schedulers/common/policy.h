/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The words that the rules of every scheduling policy here are written in.
 *
 * A policy's rules are in schedulers/NAME/policy.h: whole numbers in plain structures, loops with a
 * constant bound, no word of a kernel or a simulator. So the same lines run in BPF under sched_ext
 * and in the simulated machine of crates/sim. Divisions are unsigned, as BPF has no others before
 * its fourth version.
 *
 * All times are nanoseconds of one clock that never goes back.
 */
#ifndef ONBEAT_POLICY_H
#define ONBEAT_POLICY_H

/* The same as in the kernel's vmlinux.h, which is included before this in BPF. */
typedef unsigned char u8;
typedef unsigned int u32;
typedef int s32;
typedef long long s64;
typedef unsigned long long u64;
#ifndef ONBEAT_VMLINUX_H
typedef _Bool bool;
enum { false = 0, true = 1 };
#endif

#define POLICY_NS_PER_MS 1000000ULL
#define POLICY_NOBODY (~0ULL)

static inline u64 policy_min(u64 a, u64 b)
{
	return a < b ? a : b;
}

static inline u64 policy_max(u64 a, u64 b)
{
	return a > b ? a : b;
}

/* a - b, or nothing if that is less. */
static inline u64 policy_minus(u64 a, u64 b)
{
	return a > b ? a - b : 0;
}

/* Adds to what several CPUs change at once; to subtract, add the two's complement. */
static inline void policy_add(u64 *to, u64 n)
{
	__sync_fetch_and_add(to, n);
}

/* Sets what several CPUs change at once, if it is still what it was. */
static inline void policy_replace(u64 *what, u64 was, u64 is)
{
	__sync_val_compare_and_swap(what, was, is);
}

/* The fork and exit of a policy NAME under which a child is a stranger to its parent. */
#define POLICY_OF_STRANGERS(NAME)                                                                  \
	static inline void NAME##_fork(const struct NAME##_params *params,                         \
				       struct NAME##_machine *machine, struct NAME##_task *parent, \
				       struct NAME##_task *child)                                  \
	{                                                                                          \
	}                                                                                          \
	static inline void NAME##_exit(const struct NAME##_params *params,                         \
				       struct NAME##_machine *machine, struct NAME##_task *child,  \
				       struct NAME##_task *parent)                                 \
	{                                                                                          \
	}

#endif
