/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The kernel's types, trimmed to what the tracer reads. Offsets here mean nothing: each access is
 * relocated (CO-RE) to where the running kernel, by its own BTF, keeps the field.
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
	BPF_MAP_TYPE_LRU_HASH = 9,
	BPF_MAP_TYPE_RINGBUF = 27,
	BPF_MAP_TYPE_TASK_STORAGE = 29,
};

enum {
	BPF_ANY = 0,
	BPF_NOEXIST = 1,
	BPF_F_NO_PREALLOC = 1,
	BPF_F_MMAPABLE = 1024,
	BPF_LOCAL_STORAGE_GET_F_CREATE = 1,
	BPF_RB_AVAIL_DATA = 0,
	BPF_RB_RING_SIZE = 1,
	BPF_RB_NO_WAKEUP = 1,
	BPF_RB_FORCE_WAKEUP = 2,
};

/* The registers that a kprobe finds: the layout is the architecture's promise, and not relocated. */
#if defined(__TARGET_ARCH_x86)
struct pt_regs {
	unsigned long r15, r14, r13, r12, rbp, rbx, r11, r10, r9, r8, rax, rcx, rdx, rsi, rdi;
	unsigned long orig_rax, rip, cs, eflags, rsp, ss;
};
#elif defined(__TARGET_ARCH_arm64)
struct pt_regs {
	u64 regs[31];
	u64 sp;
	u64 pc;
};
struct user_pt_regs {
	u64 regs[31];
	u64 sp;
	u64 pc;
};
#endif

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct bpf_local_storage;

struct rq;

struct cfs_rq {
	struct rq *rq;
};

struct sched_entity {
	unsigned char sched_delayed;
	u64 sum_exec_runtime;
	u64 prev_sum_exec_runtime;
	struct cfs_rq *cfs_rq;
};

struct sched_dl_entity {
	s64 runtime;
	unsigned int dl_throttled : 1;
	unsigned int dl_yielded : 1;
	struct sched_dl_entity *pi_se;
};

struct qstr {
	const unsigned char *name;
};

struct dentry {
	struct dentry *d_parent;
	struct qstr d_name;
};

struct vfsmount {
	struct dentry *mnt_root;
};

struct mount {
	struct mount *mnt_parent;
	struct dentry *mnt_mountpoint;
	struct vfsmount mnt;
};

struct path {
	struct vfsmount *mnt;
	struct dentry *dentry;
};

struct file {
	struct path f_path;
};

struct mm_struct {
	struct file *exe_file;
};

typedef struct {
	u32 val;
} kuid_t;

struct user_namespace {
	int level;
};

struct cred {
	kuid_t uid, suid, euid, fsuid;
	struct user_namespace *user_ns;
};

struct css_set;

struct thread_info {
	u32 cpu;
};

struct task_struct {
	struct thread_info thread_info;
	unsigned int __state;
	unsigned int flags;
	int on_cpu;
	int on_rq;
	int prio;
	int normal_prio;
	unsigned int policy;
	struct sched_entity se;
	struct sched_dl_entity dl;
	int exit_state;
	unsigned in_execve : 1;
	unsigned in_iowait : 1;
	unsigned sched_reset_on_fork : 1;
	pid_t pid;
	pid_t tgid;
	u64 start_boottime;
	char comm[16];
	struct mm_struct *mm;
	const struct cred *cred;
	struct css_set *cgroups;
	struct task_struct *pi_top_task;
	struct task_struct *real_parent;
	struct bpf_local_storage *bpf_storage;
};

struct task_struct___before_5_16 {
	unsigned int cpu;
};

struct task_struct___before_5_14 {
	long state;
};

struct hrtimer {
	s64 _softexpires;
};

struct hrtimer_clock_base {
	struct hrtimer *running;
	s64 offset;
};

struct hrtimer_cpu_base {
	struct hrtimer_clock_base clock_base[1];
};

struct seq_file;

struct bpf_iter_meta {
	struct seq_file *seq;
};

struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
};

#pragma clang attribute pop

#endif
