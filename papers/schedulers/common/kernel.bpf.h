/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The kernel's functions for schedulers. Their names and arguments change between releases: what a
 * function is called in the running kernel is asked of its BTF, never of its version. A suffix
 * after three underscores tells our declarations apart, and is not the kernel's.
 */
#ifndef ONBEAT_KERNEL_BPF_H
#define ONBEAT_KERNEL_BPF_H

#include "vmlinux.h"
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

/* From include/linux/sched.h. */
#define PF_EXITING 0x00000004
#define PF_KTHREAD 0x00200000
/* As many as arrays have room for; a power of two, so that an index can be bounded by a mask. */
#define MOST_CPUS 1024
/* From include/linux/sched/prio.h: the priority of nice 0. */
#define DEFAULT_PRIO 120

s32 scx_bpf_create_dsq(u64 dsq_id, s32 node) __ksym;
s32 scx_bpf_select_cpu_dfl(struct task_struct *p, s32 prev_cpu, u64 wake_flags,
			   bool *is_idle) __ksym;
s32 scx_bpf_pick_idle_cpu(const struct cpumask *cpus_allowed, u64 flags) __ksym;
s32 scx_bpf_dsq_nr_queued(u64 dsq_id) __ksym;
void scx_bpf_cpuperf_set(s32 cpu, u32 perf) __ksym;
void scx_bpf_kick_cpu(s32 cpu, u64 flags) __ksym;
u32 scx_bpf_nr_cpu_ids(void) __ksym;
s32 scx_bpf_task_cpu(const struct task_struct *p) __ksym;
bool bpf_cpumask_test_cpu(u32 cpu, const struct cpumask *cpumask) __ksym;
struct task_struct *bpf_task_from_pid(s32 pid) __ksym;
void bpf_task_release(struct task_struct *p) __ksym;
void bpf_local_irq_save(unsigned long *flags) __ksym;
void bpf_local_irq_restore(unsigned long *flags) __ksym;

int bpf_iter_scx_dsq_new(struct bpf_iter_scx_dsq *it, u64 dsq_id, u64 flags) __ksym;
struct task_struct *bpf_iter_scx_dsq_next(struct bpf_iter_scx_dsq *it) __ksym;
void bpf_iter_scx_dsq_destroy(struct bpf_iter_scx_dsq *it) __ksym;

/* Since 6.19 this one tells whether the queue is there; the one before will go. */
bool scx_bpf_dsq_insert___v2___onbeat(struct task_struct *p, u64 dsq_id, u64 slice,
				      u64 enq_flags) __ksym __weak;
void scx_bpf_dsq_insert___onbeat(struct task_struct *p, u64 dsq_id, u64 slice,
				 u64 enq_flags) __ksym __weak;

static __always_inline void insert(struct task_struct *p, u64 dsq_id, u64 slice_ns, u64 enq_flags)
{
	if (bpf_ksym_exists(scx_bpf_dsq_insert___v2___onbeat))
		scx_bpf_dsq_insert___v2___onbeat(p, dsq_id, slice_ns, enq_flags);
	else
		scx_bpf_dsq_insert___onbeat(p, dsq_id, slice_ns, enq_flags);
}

/* Since 6.19 the arguments come in a structure. */
bool __scx_bpf_dsq_insert_vtime(struct task_struct *p,
				struct scx_bpf_dsq_insert_vtime_args *args) __ksym __weak;
void scx_bpf_dsq_insert_vtime___onbeat(struct task_struct *p, u64 dsq_id, u64 slice, u64 vtime,
				       u64 enq_flags) __ksym __weak;

/* Into a queue whose least key comes first. */
static __always_inline void insert_by_key(struct task_struct *p, u64 dsq_id, u64 slice_ns, u64 key,
					  u64 enq_flags)
{
	if (bpf_core_type_exists(struct scx_bpf_dsq_insert_vtime_args) &&
	    bpf_ksym_exists(__scx_bpf_dsq_insert_vtime)) {
		struct scx_bpf_dsq_insert_vtime_args args = {
			.dsq_id = dsq_id,
			.slice = slice_ns,
			.vtime = key,
			.enq_flags = enq_flags,
		};

		__scx_bpf_dsq_insert_vtime(p, &args);
	} else {
		scx_bpf_dsq_insert_vtime___onbeat(p, dsq_id, slice_ns, key, enq_flags);
	}
}

/* Since 7.1 it takes flags, too. */
bool scx_bpf_dsq_move_to_local___v2___onbeat(u64 dsq_id, u64 enq_flags) __ksym __weak;
bool scx_bpf_dsq_move_to_local___onbeat(u64 dsq_id) __ksym __weak;

static __always_inline bool move_to_local(u64 dsq_id)
{
	if (bpf_ksym_exists(scx_bpf_dsq_move_to_local___v2___onbeat))
		return scx_bpf_dsq_move_to_local___v2___onbeat(dsq_id, 0);
	return scx_bpf_dsq_move_to_local___onbeat(dsq_id);
}

/* Since 6.19; before, a scheduler writes the field itself. */
bool scx_bpf_task_set_slice(struct task_struct *p, u64 slice) __ksym __weak;

static __always_inline void set_slice(struct task_struct *p, u64 slice_ns)
{
	if (bpf_ksym_exists(scx_bpf_task_set_slice))
		scx_bpf_task_set_slice(p, slice_ns);
	else
		p->scx.slice = slice_ns;
}

static __always_inline bool is_queued(const struct task_struct *p)
{
	return p->scx.flags & bpf_core_enum_value(enum scx_ent_flags, SCX_TASK_QUEUED);
}

/*
 * Asking for the type has the compiler describe it whole. As long as it is only declared, libbpf
 * takes it for another one than the kernel's.
 */
static __always_inline bool is_in(s32 cpu, const struct cpumask *cpus)
{
	return bpf_core_type_exists(struct cpumask) && bpf_cpumask_test_cpu(cpu, cpus);
}

/* Has an idle one of these CPUs look for work; false if there is none. */
static __always_inline bool kick_idle(const struct cpumask *allowed)
{
	s32 cpu = scx_bpf_pick_idle_cpu(allowed, 0);

	if (cpu < 0)
		return false;
	scx_bpf_kick_cpu(cpu, SCX_KICK_IDLE);
	return true;
}

static __always_inline s32 nice_of(const struct task_struct *p)
{
	return p->static_prio - DEFAULT_PRIO;
}

#endif
