/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the loader and the BPF side of `grace` say to each other.
 */
#ifndef ONBEAT_GRACE_PLAN_H
#define ONBEAT_GRACE_PLAN_H

#include "policy.h"

/* How many threads can have a plan. Each CPU looks through all of them when it looks for work. */
#define GRACE_PLANS 64

/* What the loader hands to `set_plan`. Speeds are in 1024ths of the highest, the kernel's unit. */
struct grace_call {
	u32 slot;
	u32 tid;
	struct grace_plan plan;
};

#endif
