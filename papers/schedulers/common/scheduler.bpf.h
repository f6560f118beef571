/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Common to all schedulers, whatever their rules: its licence, how it ended, and what it counts.
 *
 * User space finds all of these by their names in the object's BTF, and shows the members of
 * `statistics` under the names that they have here.
 */
#ifndef ONBEAT_SCHEDULER_BPF_H
#define ONBEAT_SCHEDULER_BPF_H

#include "kernel.bpf.h"

char LICENSE[] SEC("license") = "GPL";

/* Why the scheduler ended; the kind is the kernel's enum scx_exit_kind, 0 while it runs. */
struct outcome {
	u64 kind;
	s64 code;
	char reason[64];
	char message[256];
};

/* In a section of its own: user space looks at it often. */
struct outcome outcome SEC(".data.outcome");

SEC("struct_ops/exit")
void BPF_PROG(ended, struct scx_exit_info *info)
{
	bpf_probe_read_kernel_str(outcome.reason, sizeof(outcome.reason), info->reason);
	bpf_probe_read_kernel_str(outcome.message, sizeof(outcome.message), info->msg);
	outcome.code = info->exit_code;
	/* The outcome above has to be written before this is seen. */
	__sync_fetch_and_add(&outcome.kind, (u64)info->kind);
}

struct statistics {
	u64 wakeups;
	u64 queued;      /* put into the queue, for whatever reason */
	u64 runs;        /* a CPU began to run a task, or went on with it after asking the rules */
	u64 preemptions; /* a CPU was taken from a task for one that the rules put first */
	u64 exhaustions; /* the rules' time for a task was over at a tick */
	u64 notifications; /* missed deadlines that programs told */
	u64 listened;      /* of these, how many the rules made something of */
	u64 speed_changes; /* a CPU was asked to run at another speed */
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct statistics);
} statistics SEC(".maps");

#define COUNT(field)                                                                 \
	do {                                                                         \
		u32 first_ = 0;                                                      \
		struct statistics *own_ = bpf_map_lookup_elem(&statistics, &first_); \
                                                                                     \
		if (own_)                                                            \
			own_->field++;                                               \
	} while (0)

/*
 * The operations of every scheduler; more of them may follow the flags.
 *
 * A task that loses its CPU where it may not leave it, as a program does that is just heard to say
 * something, stands in line, too, and so does one that ends: the kernel would leave them at that
 * CPU, before all others. The end of a program with many mappings takes 100 ms and more.
 */
#define SCHEDULER(scheduler_name, more_flags, ...)                                               \
	SEC(".struct_ops.link")                                                                  \
	struct sched_ext_ops scheduler = { .select_cpu = (void *)select_cpu,                     \
					   .runnable = (void *)runnable,                         \
					   .enqueue = (void *)enqueue,                           \
					   .dispatch = (void *)dispatch,                         \
					   .running = (void *)running,                           \
					   .update_idle = (void *)update_idle,                   \
					   .tick = (void *)tick,                                 \
					   .stopping = (void *)stopping,                         \
					   .quiescent = (void *)quiescent,                       \
					   .init_task = (void *)init_task,                       \
					   .cpu_online = (void *)cpu_online,                     \
					   .cpu_offline = (void *)cpu_offline,                   \
					   .init = (void *)init,                                 \
					   .exit = (void *)ended,                                \
					   .flags = SCX_OPS_KEEP_BUILTIN_IDLE |                  \
						    SCX_OPS_ENQ_EXITING |                        \
						    SCX_OPS_ENQ_MIGRATION_DISABLED | more_flags, \
					   .name = scheduler_name,                               \
					   __VA_ARGS__ }

#endif
