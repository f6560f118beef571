// SPDX-License-Identifier: GPL-2.0-only
/*
 * BEST: periods found from entries into the run queue, and EDF on their ends, as a sched_ext
 * scheduler.
 */
#include "../common/vmlinux.h"
#include "policy.h"

#define RULES(word) best_##word
#define DEFAULT_PARAMS BEST_PARAMS_DEFAULT
#include "../common/ordered.bpf.h"

ORDERED_SCHEDULER("best");
