/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The messages between the loader and the BPF side of `grace`.
 */
#ifndef ONBEAT_GRACE_PLAN_H
#define ONBEAT_GRACE_PLAN_H

#include "policy.h"

/* How many threads can have a plan. Each CPU looks through all of them when it looks for work. */
#define GRACE_PLANS 64

/*
 * The argument of `set_plan`, and of `forget_plan`, which asks for no plan in it. Speeds are in
 * 1024ths of the highest, the kernel's unit.
 */
struct grace_call {
	u32 slot;
	u32 tid;
	struct grace_plan plan;
};

/* The kinds of messages to the loader. */
enum {
	GRACE_STARTS = 1,   /* a thread is soft real-time from now on */
	GRACE_FINISHES = 2, /* jobs have ended */
	GRACE_LEAVES = 3,   /* it is no longer, or is no more */
};

/*
 * How many messages one thread can send in 2^GRACE_WINDOW_SHIFT ns, about 134 ms: more jobs than
 * it can be planned for, with a period of 1 ms. That a thread is soft real-time costs as much as
 * GRACE_START jobs.
 */
#define GRACE_WINDOW_SHIFT 27
#define GRACE_IN_WINDOW 160
#define GRACE_START 40

/*
 * How many messages fit before the loader reads them, which it does each 100 ms, perhaps in two
 * windows: all of the plans' threads, and as much again for threads without a plan.
 */
#define GRACE_MESSAGES (4 * GRACE_PLANS * GRACE_IN_WINDOW)

struct grace_message {
	u32 what;
	u32 tid;
	/* At a start: the period in ns. At the end of jobs: the work of all of them. */
	u64 amount;
	/*
	 * At a start: how many of a thousand jobs are to be in time. At the end of jobs: how many
	 * have ended.
	 */
	u64 number;
};

#endif
