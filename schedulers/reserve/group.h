/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the loader and the BPF side of `reserve` say to each other.
 */
#ifndef ONBEAT_RESERVE_GROUP_H
#define ONBEAT_RESERVE_GROUP_H

/* How many groups there can be. Each CPU looks through all of them when it looks for work. */
#define RESERVE_GROUPS 64

/* Whose threads a group's are. */
enum {
	RESERVE_THREAD = 1,
	RESERVE_PROCESS = 2,
	RESERVE_CGROUP = 3,
};

/*
 * What the loader hands to `set_group`, where a runtime of 0 takes the reservation away, and to
 * `tell_group`, which fills in what is below the period.
 */
struct reserve_call {
	u32 slot;
	u32 kind;
	/* The number of a thread or process, or the id of a control group. */
	u64 whom;
	u64 runtime_ns;
	u64 deadline_ns;
	u64 period_ns;
	u64 used_ns;
	u64 exhausted;
};

#endif
