// SPDX-License-Identifier: GPL-2.0-only
/*
 * BeRate: deadlines from the rate at which a task has run, and its share, as a sched_ext scheduler.
 */
#include "../common/vmlinux.h"
#include "policy.h"

#define RULES(word) berate_##word
#define DEFAULT_PARAMS BERATE_PARAMS_DEFAULT
#include "../common/ordered.bpf.h"

ORDERED_SCHEDULER("berate");
