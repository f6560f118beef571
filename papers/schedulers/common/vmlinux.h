/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The kernel's types, trimmed to what the schedulers use. Offsets here mean nothing: each access is relocated
 * (CO-RE) to where the running kernel, by its own BTF, keeps the field; so are the members of sched_ext_ops, by name.
 * SCX_TASK_QUEUED is asked for by bpf_core_enum_value; the other constants are those of the kernels that were tried.
 */
#ifndef ONBEAT_VMLINUX_H
#define ONBEAT_VMLINUX_H

typedef unsigned char __u8;
typedef short __s16;
typedef unsigned short __u16;
typedef int __s32;
typedef unsigned int __u32;
typedef long long __s64;
typedef unsigned long long __u64;
typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __s32 s32;
typedef __s64 s64;
typedef __u64 u64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;
typedef int pid_t;
typedef _Bool bool;
enum { false = 0, true = 1 };

enum bpf_map_type {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_QUEUE = 22,
	BPF_MAP_TYPE_RINGBUF = 27,
	BPF_MAP_TYPE_TASK_STORAGE = 29,
};

enum {
	BPF_ANY = 0,
	BPF_NOEXIST = 1,
	BPF_F_NO_PREALLOC = 1,
	BPF_LOCAL_STORAGE_GET_F_CREATE = 1,
	BPF_F_TIMER_ABS = 1,
	BPF_F_TIMER_CPU_PIN = 2,
};

/* In the values of maps; the kernel finds them by these names and sizes. */
struct bpf_spin_lock {
	__u32 val;
};

struct bpf_timer {
	__u64 __opaque[2];
} __attribute__((aligned(8)));

/* On the stack of a program that walks through numbers, or through a queue. */
struct bpf_iter_num {
	u64 opaque[1];
} __attribute__((aligned(8)));

struct bpf_iter_scx_dsq {
	u64 opaque[6];
} __attribute__((aligned(8)));

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct cpumask {
	unsigned long bits[1];
};

struct sched_entity {
	u64 sum_exec_runtime;
};

struct sched_ext_entity {
	u32 flags;
	u32 weight;
	u64 slice;
	u64 dsq_vtime;
};

struct cfs_rq {
	unsigned int h_nr_queued;
	unsigned int h_nr_runnable;
};

struct scx_rq {
	u32 nr_running;
};

struct sched_dl_entity {
	u64 dl_runtime;
};

struct rq {
	unsigned int nr_running;
	struct cfs_rq cfs;
	struct scx_rq scx;
	struct sched_dl_entity ext_server;
};

struct kernfs_node {
	u64 id;
};

struct cgroup {
	int level;
	struct kernfs_node *kn;
	struct cgroup *ancestors[0];
};

struct css_set {
	struct cgroup *dfl_cgrp;
};

struct task_struct {
	unsigned int flags;
	int static_prio;
	struct sched_entity se;
	struct sched_ext_entity scx;
	unsigned int policy;
	int nr_cpus_allowed;
	const struct cpumask *cpus_ptr;
	pid_t pid;
	pid_t tgid;
	struct task_struct *real_parent;
	struct task_struct *group_leader;
	u64 start_boottime;
	struct css_set *cgroups;
	char comm[16];
};

enum scx_exit_kind {
	SCX_EXIT_NONE,
};

struct scx_exit_info {
	enum scx_exit_kind kind;
	s64 exit_code;
	const char *reason;
	char *msg;
};

struct scx_init_task_args {
	bool fork;
};

struct scx_exit_task_args {
	bool cancelled;
};

struct scx_bpf_dsq_insert_vtime_args {
	u64 dsq_id;
	u64 slice;
	u64 vtime;
	u64 enq_flags;
};

enum scx_public_consts {
	SCX_OPS_NAME_LEN = 128,
};

enum scx_ops_flags {
	SCX_OPS_KEEP_BUILTIN_IDLE = 1 << 0,
	SCX_OPS_ENQ_LAST = 1 << 1,
	SCX_OPS_ENQ_EXITING = 1 << 2,
	SCX_OPS_ENQ_MIGRATION_DISABLED = 1 << 4,
};

enum scx_dsq_id_flags {
	SCX_DSQ_FLAG_BUILTIN = 1ULL << 63,
	SCX_DSQ_LOCAL = SCX_DSQ_FLAG_BUILTIN | 2,
	SCX_DSQ_GLOBAL = SCX_DSQ_FLAG_BUILTIN | 1,
};

enum scx_ent_flags {
	SCX_TASK_QUEUED = 1 << 0,
};

enum scx_enq_flags {
	SCX_ENQ_WAKEUP = 1ULL,
	SCX_ENQ_HEAD = 1ULL << 4,
	SCX_ENQ_PREEMPT = 1ULL << 32,
};

enum scx_deq_flags {
	SCX_DEQ_SLEEP = 1ULL,
};

enum scx_kick_flags {
	SCX_KICK_IDLE = 1 << 0,
	SCX_KICK_PREEMPT = 1 << 1,
};

#pragma clang attribute pop

/* Matched with the kernel's own by the names of the members; a member that is zero may be missing there. */
struct sched_ext_ops {
	s32 (*select_cpu)(struct task_struct *p, s32 prev_cpu, u64 wake_flags);
	void (*enqueue)(struct task_struct *p, u64 enq_flags);
	void (*dequeue)(struct task_struct *p, u64 deq_flags);
	void (*dispatch)(s32 cpu, struct task_struct *prev);
	void (*tick)(struct task_struct *p);
	void (*runnable)(struct task_struct *p, u64 enq_flags);
	void (*running)(struct task_struct *p);
	void (*stopping)(struct task_struct *p, bool runnable);
	void (*quiescent)(struct task_struct *p, u64 deq_flags);
	void (*set_weight)(struct task_struct *p, u32 weight);
	void (*update_idle)(s32 cpu, bool idle);
	s32 (*init_task)(struct task_struct *p, struct scx_init_task_args *args);
	void (*exit_task)(struct task_struct *p, struct scx_exit_task_args *args);
	void (*enable)(struct task_struct *p);
	void (*disable)(struct task_struct *p);
	void (*cpu_online)(s32 cpu);
	void (*cpu_offline)(s32 cpu);
	s32 (*init)(void);
	void (*exit)(struct scx_exit_info *info);
	u64 flags;
	u32 timeout_ms;
	char name[SCX_OPS_NAME_LEN];
};

#endif
