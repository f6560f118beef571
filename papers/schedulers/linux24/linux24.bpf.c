// SPDX-License-Identifier: GPL-2.0-only
/*
 * The scheduler of Linux 2.2 to 2.4, with missed deadline notifications, as a sched_ext scheduler.
 */
#include "../common/vmlinux.h"
#include "policy.h"

#define RULES(word) linux24_##word
#define DEFAULT_PARAMS LINUX24_PARAMS_DEFAULT
#include "../common/ordered.bpf.h"

ORDERED_SCHEDULER("linux24");
