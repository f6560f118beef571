// SPDX-License-Identifier: GPL-2.0-only
/*
 * Writes one record per burst of a tracked task, when the task blocks.
 *
 * What it costs others is one load and one test per task switched or woken: a task that no BPF
 * program keeps storage for is left at once. A tracked task has its state in BPF task storage, one
 * cache line; a hash map cost three times as much on a busy machine, in cache and TLB misses.
 *
 * Some switches are invisible here: a hypervisor's guest agent may hide those it is part of. So no
 * step takes for granted that the one before it was seen. CPU time is always the difference of the
 * scheduler's own account, so that bursts add up to it exactly, whatever was missed.
 */
#include "vmlinux.h"
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "record.h"

char LICENSE[] SEC("license") = "GPL";

#define TASK_DEAD 0x80
#define NS_PER_TICK 10000000 /* of /proc/TID/stat: USER_HZ is 100 */
/* preempt_count: hard interrupts and NMIs above bit 16, and bit 8 while a soft one is served */
#define INTERRUPT_MASK 0x00ff0100

enum state {
	ACTIVE = 1 << 0,    /* a burst is under way */
	EXHAUSTED = 1 << 1, /* its budget ran out */
	GONE = 1 << 2,      /* the task has exited */
};

struct activity {
	u64 woke_ns;
	u64 first_ran_ns;
	u64 next_woke_ns; /* the wakeup of the next burst; 0: none seen */
	u64 accounted_ns; /* CPU time reported so far, on the scheduler's account */
	u64 id;
	u32 waker;
	u32 next_waker;
	u32 preempted;
	u8 state;
	u8 follow_children;
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct activity);
} activities SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20);
} records SEC(".maps");

const volatile u64 most_tasks = 1;
const volatile bool raw_wakeups = false;
/*
 * Where a CPU's preempt_count lies, seen from its run queue; user space finds both in the kernel's
 * BTF. A ksym would be plainer, but needs CONFIG_KALLSYMS_ALL. 0: not known.
 */
const volatile s64 preempt_count_from_rq = 0;

struct shared shared;

static __always_inline struct activity *activity_of(struct task_struct *task)
{
	if (!task->bpf_storage)
		return 0;
	return bpf_task_storage_get(&activities, task, 0, 0);
}

static __always_inline u64 id_of(struct task_struct *task)
{
	return (task->start_boottime / NS_PER_TICK) << ID_TID_BITS | (u32)task->pid;
}

static __always_inline u32 tid_of(u64 id)
{
	return id & ((1 << ID_TID_BITS) - 1);
}

static __always_inline struct record *reserve(u32 kind, u64 id, u64 at_ns)
{
	struct record *record = bpf_ringbuf_reserve(&records, sizeof(*record), 0);

	if (!record) {
		__sync_fetch_and_add(&shared.lost, 1);
		return 0;
	}
	record->id = id;
	record->at_ns = at_ns;
	record->kind = kind;
	return record;
}

static __always_inline void tell(u32 kind, u64 id, u64 at_ns, u32 waker, u64 wakeup)
{
	struct record *record = reserve(kind, id, at_ns);

	if (!record)
		return;
	record->waker = waker;
	bpf_ringbuf_submit(record, wakeup);
}

/* The thread that runs here, if the kernel works for it and not for an interrupt. */
static __always_inline u32 waker(void)
{
	struct task_struct *current = bpf_get_current_task_btf();
	u32 preempt_count = INTERRUPT_MASK;

	if (!current->pid || !preempt_count_from_rq)
		return 0;
	bpf_probe_read_kernel(&preempt_count, sizeof(preempt_count),
			      (void *)current->se.cfs_rq->rq + preempt_count_from_rq);
	return preempt_count & INTERRUPT_MASK ? 0 : current->pid;
}

/* Queued to run; a task whose dequeue is delayed is asleep all the same (since 6.12). */
static __always_inline bool is_queued(struct task_struct *task)
{
	if (!task->on_rq)
		return false;
	return !bpf_core_field_exists(task->se.sched_delayed) || !task->se.sched_delayed;
}

static __always_inline void begin(struct activity *a, u64 first_ran_ns)
{
	a->woke_ns = a->next_woke_ns && a->next_woke_ns < first_ran_ns ? a->next_woke_ns
									: first_ran_ns;
	a->first_ran_ns = first_ran_ns;
	a->waker = a->next_waker;
	a->next_woke_ns = 0;
	a->next_waker = 0;
	a->preempted = 0;
	a->state = ACTIVE;
}

static __always_inline void finish(struct activity *a, struct task_struct *task, u64 blocked_ns)
{
	u64 account_ns = task->se.sum_exec_runtime;
	struct record *record = reserve(RECORD_BURST, a->id, blocked_ns);

	if (record) {
		record->burst.woke_ns = a->woke_ns;
		record->burst.first_ran_ns = a->first_ran_ns;
		record->burst.executed_ns = account_ns - a->accounted_ns;
		record->burst.preempted = a->preempted;
		record->burst.exhausted = a->state & EXHAUSTED;
		record->waker = a->waker;
		bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
	}
	a->accounted_ns = account_ns;
	a->state = 0;
}

/* Ends a burst whose last switch was invisible: it ran as long as the account says. */
static __always_inline void finish_unseen(struct activity *a, struct task_struct *task, u64 now)
{
	u64 blocked_ns = a->first_ran_ns + task->se.sum_exec_runtime - a->accounted_ns;

	finish(a, task, blocked_ns < now ? blocked_ns : now);
}

/* Begins a burst whose first switch was invisible. */
static __always_inline void begin_unseen(struct activity *a, struct task_struct *task, u64 now)
{
	u64 first_ran_ns = now - (task->se.sum_exec_runtime - a->accounted_ns);

	begin(a, first_ran_ns > a->next_woke_ns ? first_ran_ns : a->next_woke_ns);
}

static __always_inline int woken(struct task_struct *task)
{
	struct activity *a = activity_of(task);
	u64 now;

	if (!a)
		return 0;
	now = bpf_ktime_get_ns();
	if (a->state & ACTIVE) {
		/* It only meant to sleep, and was called back before it could. */
		if (is_queued(task))
			return 0;
		/* Unless another CPU is just about to switch from it, that was not seen. */
		if (!task->on_cpu)
			finish_unseen(a, task, now);
	}
	a->next_woke_ns = now;
	a->next_waker = waker();
	if (raw_wakeups)
		tell(RECORD_WAKEUP, a->id, now, a->next_waker, BPF_RB_NO_WAKEUP);
	return 0;
}

SEC("tp_btf/sched_waking")
int BPF_PROG(waking, struct task_struct *task)
{
	return woken(task);
}

SEC("tp_btf/sched_wakeup_new")
int BPF_PROG(wakeup_new, struct task_struct *task)
{
	return woken(task);
}

static __always_inline void gone(struct activity *a, struct task_struct *task, u64 now)
{
	u64 left = __sync_fetch_and_sub(&shared.alive, 1) - 1;

	a->state = GONE;
	/* A thread that called exec took the leader's number and lives on under it. */
	if ((u32)task->pid == tid_of(a->id))
		tell(RECORD_EXITED, a->id, now, 0, left ? BPF_RB_NO_WAKEUP : BPF_RB_FORCE_WAKEUP);
}

/* A budget ran out if the task waits for the next, other than after giving this one away. */
static __always_inline bool is_throttled(struct task_struct *task)
{
	return task->prio < 0 && BPF_CORE_READ_BITFIELD(task, dl.dl_throttled) &&
	       !BPF_CORE_READ_BITFIELD(task, dl.dl_yielded);
}

static __always_inline void left_cpu(bool preempt, struct task_struct *task, u64 now)
{
	struct activity *a = activity_of(task);

	if (!a || a->state & GONE)
		return;
	if (!(a->state & ACTIVE))
		begin_unseen(a, task, now);
	if (!preempt && task->__state) {
		finish(a, task, now);
		if (task->__state & TASK_DEAD)
			gone(a, task, now);
		return;
	}
	a->preempted++;
	if (is_throttled(task)) {
		a->state |= EXHAUSTED;
		tell(RECORD_EXHAUSTED, a->id, now, 0, BPF_RB_FORCE_WAKEUP);
	}
}

static __always_inline void got_cpu(struct task_struct *task, u64 now)
{
	struct activity *a = activity_of(task);

	if (!a)
		return;
	if (a->state & ACTIVE) {
		if (!a->next_woke_ns)
			return;
		finish_unseen(a, task, a->next_woke_ns);
	}
	begin(a, now);
}

SEC("tp_btf/sched_switch")
int BPF_PROG(switched, bool preempt, struct task_struct *prev, struct task_struct *next)
{
	u64 now;

	if (!prev->bpf_storage && !next->bpf_storage)
		return 0;
	now = bpf_ktime_get_ns();
	left_cpu(preempt, prev, now);
	got_cpu(next, now);
	return 0;
}

/* Keeps `task` from now on; its first record precedes all others of it. */
static __always_inline bool keep(struct task_struct *task, const char *comm, u8 follow_children)
{
	struct activity initial = {
		.accounted_ns = task->se.sum_exec_runtime,
		.id = id_of(task),
		.follow_children = follow_children,
	};
	u64 now = bpf_ktime_get_ns();
	struct record *record;
	bool kept;

	if (__sync_fetch_and_add(&shared.alive, 1) >= most_tasks) {
		__sync_fetch_and_sub(&shared.alive, 1);
		return false;
	}
	if (task->on_rq && is_queued(task))
		begin(&initial, now);
	record = reserve(RECORD_TRACKED, initial.id, now);
	kept = bpf_task_storage_get(&activities, task, &initial, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (record) {
		record->task.pid = task->tgid;
		bpf_probe_read_kernel_str(record->task.comm, sizeof(record->task.comm), comm);
		if (kept)
			bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
		else
			bpf_ringbuf_discard(record, BPF_RB_NO_WAKEUP);
	}
	if (!kept)
		__sync_fetch_and_sub(&shared.alive, 1);
	return kept;
}

SEC("tp_btf/sched_process_fork")
int BPF_PROG(forked, struct task_struct *parent, struct task_struct *child)
{
	struct activity *a = activity_of(parent);

	if (!a || (child->tgid != parent->tgid && !a->follow_children))
		return 0;
	if (!keep(child, child->comm, a->follow_children))
		__sync_fetch_and_add(&shared.lost, 1);
	return 0;
}

SEC("tp_btf/task_rename")
int BPF_PROG(renamed, struct task_struct *task, const char *comm)
{
	struct activity *a = activity_of(task);
	u64 now, id;
	struct record *record;

	if (!a)
		return 0;
	now = bpf_ktime_get_ns();
	id = id_of(task);
	if (id != a->id)
		tell(RECORD_EXITED, a->id, now, 0, BPF_RB_NO_WAKEUP);
	record = reserve(id == a->id ? RECORD_RENAMED : RECORD_TRACKED, id, now);
	a->id = id;
	if (record) {
		record->task.pid = task->tgid;
		bpf_probe_read_kernel_str(record->task.comm, sizeof(record->task.comm), comm);
		bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
	}
	return 0;
}

/* The last chance to tell that a task is gone, if its last switch was invisible. */
SEC("tp_btf/sched_process_free")
int BPF_PROG(freed, struct task_struct *task)
{
	struct activity *a = activity_of(task);
	u64 now;

	if (!a || a->state & GONE)
		return 0;
	now = bpf_ktime_get_ns();
	if (a->state & ACTIVE)
		finish_unseen(a, task, now);
	gone(a, task, now);
	return 0;
}

static __always_inline void track(struct task_struct *task)
{
	u32 wanted = shared.wanted;
	struct activity *a;

	if (((u32)task->pid != wanted && (u32)task->tgid != wanted) || task->exit_state)
		return;
	shared.found++;
	a = activity_of(task);
	if (a)
		a->follow_children |= shared.follow_children;
	else if (keep(task, task->comm, shared.follow_children))
		shared.added++;
	else
		shared.refused++;
}

static __always_inline void untrack(struct task_struct *task)
{
	struct activity *a = activity_of(task);

	if (!a || a->id != shared.wanted || a->state & GONE)
		return;
	shared.found++;
	__sync_fetch_and_sub(&shared.alive, 1);
	bpf_task_storage_delete(&activities, task);
}

/* Carries out user space's request; runs over every task when the iterator is read. */
SEC("iter/task")
int choose(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;

	if (!task)
		return 0;
	if (shared.request == REQUEST_TRACK)
		track(task);
	else
		untrack(task);
	return 0;
}
