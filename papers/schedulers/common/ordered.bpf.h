/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A whole scheduler around the rules of a policy that puts tasks in order by one number: the least
 * key runs first.
 *
 * The file that includes this includes the rules (schedulers/NAME/policy.h) before, and defines
 * RULES(word) as the rules' own name of it, and DEFAULT_PARAMS. All CPUs share one queue. A task
 * that becomes ready takes an idle CPU, or the one whose task has the greatest key of all, if that
 * is greater than its own. When a CPU asks for work, the task that it ran stands in line again, and
 * goes on if it still comes first.
 *
 * A call can be lost: between two tasks a CPU seems to run none, before it sleeps it is not idle
 * yet, and the kernel puts a task into the queue only after `enqueue` has called for it. So a CPU
 * looks again before it sleeps, and at each tick.
 *
 * Access to a task's record at the same time: the scheduler's operations hold the task's run queue;
 * a notification, a fork or an exit comes from the task itself, which is running then, and shuts
 * interrupts out meanwhile.
 */
#ifndef ONBEAT_ORDERED_BPF_H
#define ONBEAT_ORDERED_BPF_H

#include "line.bpf.h"

#define QUEUES 1
/* As long as the kernel's own: of a task without a record. */
#define SLICE_OF_STRANGERS_NS (20 * POLICY_NS_PER_MS)

static __always_inline void forget_cpu(s32 cpu)
{
	note_running(cpu, 0);
	note_call(cpu, 0);
}

#include "hotplug.bpf.h"
#include "../../../crates/sense/src/bpf/mark.h"

static __always_inline void go_on(struct task_record *record, s32 cpu, u64 now_ns)
{
	record->in_line = record->displaced = false;
	record->charged_at_ns = now_ns;
	note_running(cpu, key_of(record, now_ns));
}

static __always_inline void begin_to_run(struct task_struct *p, struct task_record *record, s32 cpu,
					 u64 now_ns)
{
	RULES(pick)(&params, &machine, &record->rules, now_ns);
	set_slice(p, RULES(slice)(&params, &machine, &record->rules, now_ns));
	go_on(record, cpu, now_ns);
	COUNT(runs);
}

static __always_inline void stand_in_line(struct task_record *record, s32 cpu, u64 now_ns)
{
	u64 behind;

	if (record->in_line)
		return;
	record->in_line = true;
	behind = first_key_after(key_of(record, now_ns), cpu, false);
	RULES(put_back)(&params, &machine, &record->rules, behind, now_ns);
}

SEC("struct_ops/select_cpu")
s32 BPF_PROG(select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	struct task_record *record = find(p);
	bool is_idle = false;
	s32 cpu = scx_bpf_select_cpu_dfl(p, prev_cpu, wake_flags, &is_idle);

	/* It is woken up for that, and asks for work. */
	if (record)
		record->has_cpu = is_idle;
	return cpu;
}

SEC("struct_ops/runnable")
void BPF_PROG(runnable, struct task_struct *p, u64 enq_flags)
{
	struct task_record *record = find(p);

	if (!record || !(enq_flags & SCX_ENQ_WAKEUP))
		return;
	RULES(wakeup)(&params, &machine, &record->rules, bpf_ktime_get_ns());
	COUNT(wakeups);
}

SEC("struct_ops/enqueue")
void BPF_PROG(enqueue, struct task_struct *p, u64 enq_flags)
{
	struct task_record *record = find(p);
	u64 now_ns = bpf_ktime_get_ns();
	bool was_put_back, was_displaced, has_cpu;
	s32 cpu = scx_bpf_task_cpu(p);
	u64 key, place, slice_ns;

	/* The kernel would wait for ever for what is put nowhere. */
	if (!record || !record->joined) {
		insert(p, SCX_DSQ_GLOBAL, SLICE_OF_STRANGERS_NS, enq_flags);
		return;
	}
	was_put_back = record->in_line;
	was_displaced = record->displaced;
	has_cpu = record->has_cpu;
	record->displaced = record->has_cpu = false;
	slice_ns = RULES(slice)(&params, &machine, &record->rules, now_ns);
	/*
	 * All tasks wait for such a thread; but one that computes on and on stands in line like all
	 * others.
	 */
	if (serves_its_cpu(p) && enq_flags & SCX_ENQ_WAKEUP) {
		insert(p, SCX_DSQ_LOCAL, slice_ns, enq_flags | SCX_ENQ_PREEMPT);
		return;
	}
	key = key_of(record, now_ns);
	/* It was before all who are in line, and has not had its turn. */
	place = was_displaced && !was_put_back ? policy_min(key, first_key(cpu, false) - 1) : key;
	insert_by_key(p, READY, slice_ns, place, enq_flags);
	COUNT(queued);
	/* Unless that was taken before the task stood in line. */
	if (has_cpu && !wanted_from_above(cpu))
		return;
	if (was_displaced) {
		/* The task before it in line may have been promised its CPU. */
		if (!call_for(p, key, now_ns))
			call_for_first(now_ns);
	} else if (was_put_back) {
		/* The CPU that put it back looks for itself. */
		kick_idle(p->cpus_ptr);
	} else {
		call_for(p, key, now_ns);
	}
}

SEC("struct_ops/dispatch")
void BPF_PROG(dispatch, s32 cpu, struct task_struct *prev)
{
	u64 now_ns = bpf_ktime_get_ns();
	struct task_record *record;

	/* The task that was promised this CPU takes another one: see stopping and update_idle. */
	if (is_taken_from_above(cpu))
		return;
	note_call(cpu, 0);
	if (prev && is_queued(prev)) {
		record = find(prev);
		if (record && record->joined) {
			charge(prev, record, now_ns);
			stand_in_line(record, cpu, now_ns);
			/* Or the first task in line has gone to another CPU since. */
			if (key_of(record, now_ns) < first_key(cpu, true) ||
			    !move_to_local(READY)) {
				record->began_with = key_of(record, now_ns);
				begin_to_run(prev, record, cpu, now_ns);
			}
			return;
		}
	}
	move_to_local(READY);
}

SEC("struct_ops/running")
void BPF_PROG(running, struct task_struct *p)
{
	struct task_record *record = find(p);
	u64 now_ns = bpf_ktime_get_ns();
	s32 cpu = scx_bpf_task_cpu(p);

	if (!record || !record->joined)
		return;
	record->charged_ns = p->se.sum_exec_runtime;
	if (record->changes) {
		/* It never left its CPU, and a slice that was taken from it stays taken. */
		record->changes = false;
		go_on(record, cpu, now_ns);
	} else {
		record->began_with = p->scx.dsq_vtime;
		begin_to_run(p, record, cpu, now_ns);
	}
}

SEC("struct_ops/update_idle")
void BPF_PROG(update_idle, s32 cpu, bool is_idle)
{
	if (is_idle && first_key(cpu, true) < POLICY_NOBODY)
		kick_unless_away(cpu, SCX_KICK_IDLE);
	/* The CPU was to come for a task in line. */
	if (!is_idle && wanted_from_above(cpu))
		call_for_first(bpf_ktime_get_ns());
}

SEC("struct_ops/tick")
void BPF_PROG(tick, struct task_struct *p)
{
	struct task_record *record = find(p);
	u64 now_ns = bpf_ktime_get_ns();
	s32 cpu = scx_bpf_task_cpu(p);

	if (!record || !record->joined)
		return;
	charge(p, record, now_ns);
	note_running(cpu, key_of(record, now_ns));
	if (RULES(tick)(&params, &machine, &record->rules, now_ns)) {
		set_slice(p, 0);
		COUNT(exhaustions);
	} else if (!serves_its_cpu(p) && first_key(cpu, false) < record->began_with) {
		set_slice(p, 0);
		COUNT(preemptions);
	} else {
		call_idle_for_first();
	}
}

SEC("struct_ops/stopping")
void BPF_PROG(stopping, struct task_struct *p, bool runnable)
{
	struct task_record *record = find(p);
	u64 now_ns = bpf_ktime_get_ns();
	s32 cpu = scx_bpf_task_cpu(p);

	note_running(cpu, 0);
	if (!record || !record->joined)
		return;
	charge(p, record, now_ns);
	if (!runnable) {
		/* Unless it sleeps, which quiescent tells. */
		record->changes = true;
		return;
	}
	record->displaced = displace(p, cpu);
	/* It may keep its place, unless its turn is over or another task is about to take it. */
	if (!record->displaced || is_called(cpu) || !RULES(keeps_place)(&record->rules) ||
	    RULES(tick)(&params, &machine, &record->rules, now_ns))
		stand_in_line(record, cpu, now_ns);
}

SEC("struct_ops/quiescent")
void BPF_PROG(quiescent, struct task_struct *p, u64 deq_flags)
{
	struct task_record *record = find(p);

	if (!record || !record->joined || !(deq_flags & SCX_DEQ_SLEEP))
		return;
	record->changes = false;
	RULES(block)(&params, &machine, &record->rules, bpf_ktime_get_ns());
}

SEC("struct_ops/set_weight")
void BPF_PROG(set_weight, struct task_struct *p, u32 weight)
{
	struct task_record *record = find(p);

	if (record && record->joined)
		RULES(renice)(&params, &machine, &record->rules, nice_of(p));
}

SEC("struct_ops.s/init_task")
s32 BPF_PROG(init_task, struct task_struct *p, struct scx_init_task_args *args)
{
	struct task_record *record;

	record = bpf_task_storage_get(&tasks, p, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!record)
		return -12; /* ENOMEM */
	record->is_child = args->fork;
	return 0;
}

SEC("struct_ops/enable")
void BPF_PROG(enable, struct task_struct *p)
{
	struct task_record *record = find(p), *parent;
	bool has_just_begun;

	if (!record)
		return;
	/*
	 * The rules' state stays. A task that holds a lock has the class of a real-time thread for
	 * as long as that waits for it.
	 */
	if (record->was_here) {
		record->in_line = record->has_cpu = record->displaced = record->changes = false;
		record->charged_ns = p->se.sum_exec_runtime;
		RULES(renice)(&params, &machine, &record->rules, nice_of(p));
		record->joined = true;
		return;
	}
	/* If not, it came to this policy later. */
	has_just_begun = record->is_child && !p->se.sum_exec_runtime;
	__builtin_memset(record, 0, sizeof(*record));
	record->charged_ns = p->se.sum_exec_runtime;
	RULES(join)(&params, &machine, &record->rules, nice_of(p), bpf_ktime_get_ns());
	record->joined = true;
	if (!has_just_begun)
		return;
	/* Its run queue is held, which shuts interrupts out. */
	parent = find(bpf_get_current_task_btf());
	if (parent && parent->joined)
		RULES(fork)(&params, &machine, &parent->rules, &record->rules);
}

SEC("struct_ops/disable")
void BPF_PROG(disable, struct task_struct *p)
{
	struct task_record *record = find(p);

	if (!record || !record->joined)
		return;
	record->joined = false;
	record->was_here = true;
	RULES(leave)(&params, &machine, &record->rules);
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(exits, struct task_struct *p)
{
	/* The heir of a thread is the first of its process: the one that began it may be gone. */
	struct task_struct *heir = p->pid == p->tgid ? p->real_parent : p->group_leader;
	struct task_record *record = find(p), *parent = find(heir);
	struct RULES(task) rules;
	unsigned long interrupts;

	if (!record || !record->joined || !parent || !parent->joined)
		return 0;
	bpf_local_irq_save(&interrupts);
	present(record, bpf_ktime_get_ns(), &rules);
	RULES(exit)(&params, &machine, &rules, &parent->rules);
	bpf_local_irq_restore(&interrupts);
	return 0;
}

SEC("struct_ops.s/init")
s32 BPF_PROG(init)
{
	return scx_bpf_nr_cpu_ids() > MOST_CPUS ? -7 /* E2BIG */ : scx_bpf_create_dsq(READY, -1);
}

/* A mark (mark.h): onbeat_mdn(). */
SEC("tp_btf/task_prctl_unknown")
int BPF_PROG(missed_deadline, int option, unsigned long kind)
{
	struct task_struct *p = bpf_get_current_task_btf();
	struct task_record *record = find(p);
	u64 now_ns = bpf_ktime_get_ns();
	unsigned long interrupts;
	bool listened;

	if (option != MARK || (u32)kind != MARK_MISSED_DEADLINE || !record || !record->joined)
		return 0;
	bpf_local_irq_save(&interrupts);
	listened = RULES(mdn)(&params, &machine, &record->rules, now_ns);
	note_running(bpf_get_smp_processor_id(), key_of(record, now_ns));
	bpf_local_irq_restore(&interrupts);
	COUNT(notifications);
	if (listened)
		COUNT(listened);
	return 0;
}

#define ORDERED_SCHEDULER(scheduler_name)                                                        \
	SCHEDULER(scheduler_name, 0, .set_weight = (void *)set_weight, .enable = (void *)enable, \
		  .disable = (void *)disable)

#endif
