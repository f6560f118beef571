/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The messages between the loader and the BPF side of `reserve`.
 */
#ifndef ONBEAT_RESERVE_GROUP_H
#define ONBEAT_RESERVE_GROUP_H

/* How many groups there can be. Each CPU looks through all of them when it looks for work. */
#define RESERVE_GROUPS 64

enum {
	RESERVE_PROCESS = 1,
	RESERVE_CGROUP = 2,
};

/*
 * The argument of `set_group`, where a runtime of 0 takes the reservation away, and of
 * `tell_group`, which fills in the members below the period.
 */
struct reserve_call {
	u32 slot;
	u32 kind;
	/* The number of a process, or the id of a control group. */
	u64 whom;
	u64 runtime_ns;
	u64 deadline_ns;
	u64 period_ns;
	u64 used_ns;
	u64 exhausted;
};

#endif
