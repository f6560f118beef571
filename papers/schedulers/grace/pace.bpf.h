/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How fast each CPU really is, as its driver tells: the governor follows what is asked of it up to
 * a tick later, or not at all, and what a job has done meanwhile is what the CPU had of speed, not
 * what was meant.
 *
 * A driver that changes speeds by itself (HWP) tells nothing; what was asked for is all that is
 * known then.
 */
#ifndef ONBEAT_GRACE_PACE_BPF_H
#define ONBEAT_GRACE_PACE_BPF_H

#include "../common/urgency.bpf.h"

/* The highest speed, in the kernel's unit: SCX_CPUPERF_ONE. */
#define FULL 1024ULL
/* Looks at what another CPU may be writing. */
#define PACE_LOOKS 4

/*
 * The frequency of the highest speed, set by the loader; 0: no speeds are set. In a section of its
 * own, to be written alone.
 */
u64 highest_khz SEC(".data.highest");

/* The programs that hear of frequencies may not use maps with timers. */
struct pace {
	/* Odd while the rest is written. */
	u64 version;
	/* In force; 0: not known yet. */
	u64 speed;
	u64 since_ns;
	/*
	 * The work that the CPU would have done up to then had it always worked, in time at the
	 * highest speed; never 0.
	 */
	u64 worked_ns;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MAX_CPUS);
	__type(key, u32);
	__type(value, struct pace);
} paces SEC(".maps");

static __always_inline u64 worked_by(const struct pace *pace, u64 now)
{
	return pace->worked_ns + policy_minus(now, pace->since_ns) * pace->speed / FULL;
}

/*
 * The driver has set another frequency: on the CPU itself or, if it has to wait for that, from
 * another. Changes of one CPU's come one after the other.
 */
SEC("raw_tp/cpu_frequency")
int BPF_PROG(frequency_changes, u32 khz, u32 cpu)
{
	struct pace *pace = bpf_map_lookup_elem(&paces, &cpu);
	u64 now = bpf_ktime_get_ns();

	if (!pace || !highest_khz)
		return 0;
	__sync_fetch_and_add(&pace->version, 1);
	pace->worked_ns = pace->speed ? worked_by(pace, now) : 1;
	pace->since_ns = now;
	/* Rounded up, as those of plans are: a job that has what it asked for asks no more. */
	pace->speed = policy_max(policy_min((khz * FULL + highest_khz - 1) / highest_khz, FULL), 1);
	__sync_fetch_and_add(&pace->version, 1);
	return 0;
}

/* The pace of a CPU, in one piece; none if it is not known. */
static __always_inline struct pace pace_of(u32 cpu)
{
	struct pace *pace = bpf_map_lookup_elem(&paces, &cpu), seen = {};
	u64 version;
	u32 look;

	if (!pace)
		return seen;
	bpf_for(look, 0, PACE_LOOKS)
	{
		/* Adding nothing is a barrier, which BPF has no other name for. */
		version = __sync_fetch_and_add(&pace->version, 0);
		seen = *pace;
		if (!(version & 1) && __sync_fetch_and_add(&pace->version, 0) == version)
			return seen;
	}
	seen.speed = 0;
	return seen;
}

#endif
