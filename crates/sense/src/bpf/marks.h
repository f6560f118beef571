/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Hears marks (mark.h). Included once per way to reach a task, after tracepoints.h. User space
 * loads the first of the three programs that the kernel takes.
 */

/* A process speaks for its parent only if that is the same user's. */
static __always_inline struct task_struct *VARIANT(marking)(unsigned long kind)
{
	struct task_struct *task = CURRENT_TASK();
	struct task_struct *parent;

	if (!(kind & MARK_OF_PARENT))
		return task;
	parent = READ(task, real_parent);
	return BPF_CORE_READ(parent, cred, uid.val) == BPF_CORE_READ(task, cred, uid.val) ? parent
											  : task;
}

static __always_inline int VARIANT(mark)(unsigned long said, u64 period_ns, u32 permille)
{
	struct task_struct *task = VARIANT(marking)(said);
	struct activity *a = FIND(task);
	u32 mark = said & ~MARK_OF_PARENT;
	u32 kind = RECORD_JOB_BEGAN + mark - MARK_JOB_BEGAN;
	struct record *record;
	u64 now;

	if (!a || a->state & GONE || mark < MARK_JOB_BEGAN || mark > MARK_REALTIME_EXITED)
		return 0;
	a->is_timed = 1;
	if (!may_mark(a, kind)) {
		a->suppressed++;
		return 0;
	}
	now = bpf_ktime_get_ns();
	if (a->suppressed)
		tell(RECORD_SUPPRESSED, a->id, now, a->suppressed);
	a->suppressed = 0;
	record = reserve(kind, a->id, now);
	if (!record)
		return 0;
	record->of.mark.woke_ns = a->state & ACTIVE ? a->woke_ns : now;
	record->of.mark.executed_ns = VARIANT(executed)(a, task, now);
	record->of.mark.period_ns = (s64)period_ns > 0 ? period_ns : 0;
	record->of.mark.permille = (int)permille > 0 ? permille : 0;
	submit(record);
	return 0;
}

/* Since 6.13: an option that no part of the kernel knows. */
SEC(HOOK "/task_prctl_unknown")
int PROGRAM(VARIANT(marked), int option, unsigned long kind, unsigned long period_ns,
	    unsigned long permille)
{
	return option == MARK ? VARIANT(mark)(kind, period_ns, permille) : 0;
}

/* Before: each prctl(), as the security modules are asked about it. */
SEC("fentry/security_task_prctl")
int PROGRAM(VARIANT(marked_by_fentry), int option, unsigned long kind, unsigned long period_ns,
	    unsigned long permille)
{
	return option == MARK ? VARIANT(mark)(kind, period_ns, permille) : 0;
}

/* Where the kernel has no fentry: on arm64 before 6.4, and without function tracing. */
SEC("kprobe/security_task_prctl")
int KPROBE(VARIANT(marked_by_kprobe), int option, unsigned long kind, unsigned long period_ns,
	   unsigned long permille)
{
	return option == MARK ? VARIANT(mark)(kind, period_ns, permille) : 0;
}
