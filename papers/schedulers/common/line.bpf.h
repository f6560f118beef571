/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The one queue of a scheduler that orders its tasks by a number: the record of each task, what the
 * CPUs run meanwhile, and for which task each of them is called to the queue. ordered.bpf.h says
 * when.
 */
#ifndef ONBEAT_LINE_BPF_H
#define ONBEAT_LINE_BPF_H

#include "scheduler.bpf.h"
#include "above.bpf.h"

#define READY 0
/* How many tasks at the head of the queue are looked at for one that may run here. */
#define MOST_LOOKED_AT 64
/* How many there are looked at for one that a CPU can come for: this is done at each tick. */
#define MOST_CALLED_FOR 8

/* Set before the scheduler is loaded. */
struct RULES(params) params = DEFAULT_PARAMS;

struct RULES(machine) machine;

struct task_record {
	struct RULES(task) rules; /* first: user space reads it */
	u64 charged_ns;           /* of the CPU time on the kernel's account, what the rules know */
	u64 charged_at_ns;        /* when it was charged last, or began to run */
	u64 began_with;           /* its place in line when it began to run */
	bool joined;
	bool is_child;  /* was forked while this scheduler was in force */
	bool was_here;  /* has joined before, and was in another class since */
	bool in_line;   /* has stood in line again since it ran */
	bool has_cpu;   /* an idle CPU was found for it */
	bool displaced; /* lost its CPU to a task that comes before all of ours */
	bool changes;   /* the kernel changes something about it while it runs */
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct task_record);
} tasks SEC(".maps");

/* The key of the task that each CPU runs; 0: none of ours. */
u64 running_keys[MOST_CPUS];

/*
 * The key of the task for which each CPU was called to the queue and has not come yet; 0: it was
 * not called.
 */
u64 called_for[MOST_CPUS];

static __always_inline struct task_record *find(struct task_struct *p)
{
	return bpf_task_storage_get(&tasks, p, 0, 0);
}

static __always_inline u64 key_of(struct task_record *record, u64 now_ns)
{
	return RULES(key)(&params, &machine, &record->rules, now_ns);
}

static __always_inline void note_running(s32 cpu, u64 key)
{
	running_keys[(u32)cpu & (MOST_CPUS - 1)] = key;
}

static __always_inline void note_call(s32 cpu, u64 key)
{
	called_for[(u32)cpu & (MOST_CPUS - 1)] = key;
}

static __always_inline bool is_called(s32 cpu)
{
	return called_for[(u32)cpu & (MOST_CPUS - 1)] != 0;
}

static __always_inline void charge(struct task_struct *p, struct task_record *record, u64 now_ns)
{
	u64 account_ns = p->se.sum_exec_runtime;
	u64 ran_ns = account_ns - record->charged_ns;

	record->charged_ns = account_ns;
	record->charged_at_ns = now_ns;
	if (ran_ns)
		RULES(charge)(&params, &machine, &record->rules, ran_ns, now_ns);
}

/* The rules' state of the task that runs here, if they charge it up to now. */
static __always_inline void present(const struct task_record *record, u64 now_ns,
				    struct RULES(task) * rules)
{
	*rules = record->rules;
	if (record->charged_at_ns < now_ns)
		RULES(charge)(&params, &machine, rules, now_ns - record->charged_at_ns, now_ns);
}

/*
 * The present key of what the CPU runs: of another one as of its last tick, of this one up to now.
 * If it was called, of what it will run: a task that becomes ready before it comes looks for
 * another one.
 */
static __always_inline u64 running_key(s32 cpu, u64 now_ns)
{
	u64 key = running_keys[(u32)cpu & (MOST_CPUS - 1)];
	u64 called = called_for[(u32)cpu & (MOST_CPUS - 1)];
	struct task_record *record;
	struct RULES(task) rules;

	if (key && called)
		return called;
	if (!key || cpu != (s32)bpf_get_smp_processor_id())
		return key;
	record = find(bpf_get_current_task_btf());
	if (!record || !record->joined)
		return key;
	present(record, now_ns, &rules);
	return RULES(key)(&params, &machine, &rules, now_ns);
}

/* The CPU whose task the rules put last, if they put it behind the key; or less than 0. */
static __always_inline s32 cpu_to_take(struct task_struct *p, u64 key, u64 now_ns)
{
	u64 greatest = key;
	s32 found = -1;
	s32 cpus = (s32)scx_bpf_nr_cpu_ids();
	s32 cpu;

	bpf_for(cpu, 0, cpus)
	{
		u64 running = running_key(cpu, now_ns);

		if (running > greatest && is_in(cpu, p->cpus_ptr)) {
			greatest = running;
			found = cpu;
		}
	}
	return found;
}

/*
 * The least key in the queue, greater than `after`, of a task that may run on the CPU, or
 * POLICY_NOBODY. If the first MOST_LOOKED_AT have none, a task behind them may: with `unseen` the
 * answer is then the least that its key can be.
 */
static __always_inline u64 first_key_after(u64 after, s32 cpu, bool unseen)
{
	struct task_struct *p;
	u64 key = POLICY_NOBODY;
	u32 looked_at = 0;

	bpf_for_each(scx_dsq, p, READY, 0)
	{
		if (p->scx.dsq_vtime > after && is_in(cpu, p->cpus_ptr)) {
			key = p->scx.dsq_vtime;
			break;
		}
		if (++looked_at >= MOST_LOOKED_AT) {
			if (unseen)
				key = p->scx.dsq_vtime;
			break;
		}
	}
	return key;
}

/* The same for any key: none is 0. */
static __always_inline u64 first_key(s32 cpu, bool unseen)
{
	return first_key_after(0, cpu, unseen);
}

/*
 * Has an idle CPU come for a task in line, or, if there is none, the one whose task the rules put
 * last.
 */
static __always_inline bool call_for(struct task_struct *p, u64 key, u64 now_ns)
{
	s32 cpu;

	if (kick_idle(p->cpus_ptr))
		return true;
	cpu = cpu_to_take(p, key, now_ns);
	if (cpu < 0)
		return false;
	note_call(cpu, key);
	scx_bpf_kick_cpu(cpu, SCX_KICK_PREEMPT);
	COUNT(preemptions);
	return true;
}

/* Has an idle CPU come for the first in line that may use one. */
static __always_inline void call_idle_for_first(void)
{
	struct task_struct *p;
	u32 looked_at = 0;

	bpf_for_each(scx_dsq, p, READY, 0)
	{
		if (kick_idle(p->cpus_ptr) || ++looked_at >= MOST_CALLED_FOR)
			break;
	}
}

/* For the first in line that any CPU can come for: the one that was to come will not. */
static __always_inline void call_for_first(u64 now_ns)
{
	struct task_struct *p;
	u32 looked_at = 0;

	bpf_for_each(scx_dsq, p, READY, 0)
	{
		if (call_for(p, p->scx.dsq_vtime, now_ns) || ++looked_at >= MOST_CALLED_FOR)
			break;
	}
}

#endif
