/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The programs on the scheduler's tracepoints. Included once per way to reach a task
 * (tracer.bpf.c), which has defined VARIANT, HOOK, READ and the others.
 */

static __always_inline u64 VARIANT(id_of)(struct task_struct *task)
{
	return (READ(task, start_boottime) / NS_PER_TICK) << ID_TID_BITS | (u32)READ(task, pid);
}

static __always_inline u64 VARIANT(account_of)(struct task_struct *task)
{
	return READ(task, se.sum_exec_runtime);
}

/* Not 0: does not want to run. Renamed in 5.14. */
static __always_inline u32 VARIANT(state_of)(struct task_struct *task)
{
	struct task_struct___before_5_14 *old = (void *)task;

	if (bpf_core_field_exists(task->__state))
		return READ(task, __state);
	return BPF_CORE_READ(old, state);
}

/* This CPU's run queue. */
static __always_inline void *VARIANT(this_rq)(void)
{
	struct task_struct *current = CURRENT_TASK();

	return BPF_CORE_READ(current, se.cfs_rq, rq);
}

/* The thread that runs here, if the kernel works for it and not for an interrupt. */
static __always_inline u32 VARIANT(waker)(void)
{
	struct task_struct *current = CURRENT_TASK();
	u32 tid = READ(current, pid);

	if (!tid || !preempt_count_from_rq || is_in_interrupt(VARIANT(this_rq)()))
		return 0;
	return tid;
}

/* As record.h has it: the waker of the task here, a thread or a timer. */
static __always_inline u32 VARIANT(woken_by)(struct task_struct *task, u64 now)
{
	void *rq;

	/* The end of its own request to a disk: no clock, and no work for another thread. */
	if (READ_BITFIELD(task, in_iowait))
		return READ(task, pid);
	if (!preempt_count_from_rq)
		return 0;
	rq = VARIANT(this_rq)();
	return is_in_interrupt(rq) ? by_timer(rq, now) : READ(CURRENT_TASK(), pid);
}

/* Queued to run; a task whose dequeue is delayed is asleep all the same (since 6.12). */
static __always_inline bool VARIANT(is_queued)(struct task_struct *task)
{
	if (!READ(task, on_rq))
		return false;
	return !bpf_core_field_exists(task->se.sched_delayed) || !READ(task, se.sched_delayed);
}

/* A thread that is not tracked is woken: counts it if a tracked one does it. */
static __always_inline void VARIANT(other_woken)(struct task_struct *task)
{
	struct activity *a = FIND(CURRENT_TASK());
	struct partner initial = { .count = 1 };
	struct partner_key key = {};
	struct partner *partner;

	if (!a || a->state & GONE || READ(task, flags) & PF_KTHREAD || READ(task, tgid) == 1 ||
	    !VARIANT(waker)())
		return;
	key.waker = a->id;
	key.wakee = VARIANT(id_of)(task);
	partner = bpf_map_lookup_elem(&partners, &key);
	if (partner) {
		__sync_fetch_and_add(&partner->count, 1);
		return;
	}
	initial.pid = READ(task, tgid);
	bpf_probe_read_kernel_str(initial.comm, sizeof(initial.comm), task->comm);
	bpf_map_update_elem(&partners, &key, &initial, BPF_NOEXIST);
}

/*
 * All CPU time of the task. While it runs, the scheduler's account lags behind by up to a tick; the
 * clock does not, but counts what a host steals as well. Never less than was told before.
 */
static __always_inline u64 VARIANT(executed)(struct activity *a, struct task_struct *task, u64 now)
{
	u64 account_ns = VARIANT(account_of)(task);
	u64 executed_ns = account_ns;
	bool is_here = task == CURRENT_TASK();

	if (is_here && a->got_cpu_ns)
		executed_ns = a->got_cpu_account_ns + now - a->got_cpu_ns;
	else if (is_here && a->state & ACTIVE && !a->preempted)
		executed_ns = a->accounted_ns + now - a->first_ran_ns;
	if (executed_ns < account_ns)
		executed_ns = account_ns;
	if (a->marked_account_ns < executed_ns)
		a->marked_account_ns = executed_ns;
	return a->marked_account_ns;
}

/*
 * The task asked for a time that was over, and was called back before it could sleep. The work from
 * now on is another job, and so another burst.
 */
static __always_inline void VARIANT(went_on)(struct activity *a, struct task_struct *task, u64 now,
					     u32 waker)
{
	u64 account_ns = VARIANT(account_of)(task);

	if (task == CURRENT_TASK())
		account_ns = VARIANT(executed)(a, task, now);
	a->is_timed = 1;
	finish(a, account_ns, now);
	a->next_waker = waker;
	begin(a, now);
}

static __always_inline int VARIANT(woken)(struct task_struct *task)
{
	struct activity *a = IS_UNKNOWN(task) ? 0 : FIND(task);
	u32 waker;
	u64 now;

	if (!a) {
		if (tell_partners)
			VARIANT(other_woken)(task);
		return 0;
	}
	now = bpf_ktime_get_ns();
	waker = VARIANT(woken_by)(task, now);
	if (a->state & ACTIVE) {
		/* It only meant to sleep, and was called back before it could. */
		if (VARIANT(is_queued)(task)) {
			if (waker & WOKEN_BY_TIMER)
				VARIANT(went_on)(a, task, now, waker);
			return 0;
		}
		/* Unless another CPU is just about to switch from it, that was not seen. */
		if (!READ(task, on_cpu))
			finish_unseen(a, VARIANT(account_of)(task), now);
	}
	a->next_woke_ns = now;
	a->next_waker = waker;
	a->ready_ns = now;
	if (raw_wakeups)
		tell(RECORD_WAKEUP, a->id, now, waking_thread(waker));
	return 0;
}

SEC(HOOK "/sched_waking")
int PROGRAM(VARIANT(waking), struct task_struct *task)
{
	return VARIANT(woken)(task);
}

SEC(HOOK "/sched_wakeup_new")
int PROGRAM(VARIANT(wakeup_new), struct task_struct *task)
{
	return VARIANT(woken)(task);
}

/* A thread that calls exec takes the leader's number, and the dying leader gets the thread's. */
static __always_inline bool VARIANT(is_taken_over)(struct activity *a, struct task_struct *task)
{
	return (u32)READ(task, pid) != tid_of(a->id);
}

/* Ends the last burst of a task, and tells of its end; not if another goes on under its number. */
static __always_inline void VARIANT(gone)(struct activity *a, struct task_struct *task, u64 now)
{
	bool tells = !VARIANT(is_taken_over)(a, task);

	/* Its last burst is told in any case. */
	a->window_bursts = 0;
	if (tells && a->state & ACTIVE)
		finish(a, VARIANT(account_of)(task), now);
	if (tells && a->suppressed)
		tell(RECORD_SUPPRESSED, a->id, now, a->suppressed);
	__sync_fetch_and_sub(&shared.alive, 1);
	a->state = GONE;
	if (tells && shared.alive)
		tell(RECORD_EXITED, a->id, now, 0);
	else if (tells)
		tell_at_once(RECORD_EXITED, a->id, now);
}

/* The budget of the task that leaves the CPU ran out, or the task gave the rest of it away. */
static __always_inline void VARIANT(throttled)(struct activity *a, struct task_struct *task,
					       u64 now)
{
	enum record_kind kind = RECORD_YIELDED;

	if (!READ_BITFIELD(task, dl.dl_yielded)) {
		kind = RECORD_EXHAUSTED;
		a->state |= EXHAUSTED;
	}
	tell_at_once(kind, a->id, now);
}

static __always_inline void VARIANT(left_cpu)(bool preempt, struct task_struct *task, u64 now)
{
	struct activity *a = FIND(task);
	u32 state;

	if (!a || a->state & GONE)
		return;
	left(a->id, now);
	if (!(a->state & ACTIVE))
		begin_unseen(a, VARIANT(account_of)(task), now);
	state = VARIANT(state_of)(task);
	if (!preempt && state) {
		if (state & TASK_DEAD)
			VARIANT(gone)(a, task, now);
		else
			finish(a, VARIANT(account_of)(task), now);
		return;
	}
	a->preempted++;
	a->ready_ns = now;
	if (READ(task, prio) < 0 && READ_BITFIELD(task, dl.dl_throttled)) {
		a->ready_ns = 0;
		VARIANT(throttled)(a, task, now);
	}
}

/*
 * The task was ready, and waited for `prev`, which would run on. No longer than `prev` ran: before
 * that, it may have waited for its own process's threads. A thread that blocks now, as a display
 * server does once it has drawn, is no competitor, and neither are the kernel's; but many that each
 * run for a moment are, on a CPU that has been busy for longer than a display server draws.
 */
static __always_inline void VARIANT(waited)(struct activity *a, struct task_struct *prev,
					    struct task_struct *task, u64 now)
{
	u64 waited_ns = now - a->ready_ns;
	struct record *record;
	u64 ran_ns;
	bool is_one;

	if (!a->ready_ns || !READ(prev, pid) || READ(prev, tgid) == READ(task, tgid) ||
	    READ(prev, flags) & PF_KTHREAD)
		return;
	ran_ns = READ(prev, se.sum_exec_runtime) - READ(prev, se.prev_sum_exec_runtime);
	is_one = ran_ns >= TURN_NS && !VARIANT(state_of)(prev);
	if (!is_one)
		a->crowded_ns += crowded_ns(a->id, waited_ns, now);
	if ((is_one ? waited_ns : a->crowded_ns) < WAIT_NS ||
	    now - a->waited_told_ns < WAIT_TOLD_EVERY_NS)
		return;
	record = reserve(RECORD_WAITED, a->id, now);
	if (!record)
		return;
	a->waited_told_ns = now;
	record->waker = 0;
	record->of.burst.executed_ns = a->crowded_ns;
	if (is_one) {
		record->waker = READ(prev, tgid);
		record->of.burst.executed_ns = waited_ns < ran_ns ? waited_ns : ran_ns;
	} else {
		a->crowded_ns = 0;
	}
	bpf_ringbuf_submit(record, BPF_RB_FORCE_WAKEUP);
}

static __always_inline void VARIANT(got_cpu)(struct task_struct *prev, struct task_struct *task,
					     u64 now)
{
	struct activity *a = FIND(task);

	if (!a)
		return;
	VARIANT(waited)(a, prev, task, now);
	a->ready_ns = 0;
	if (a->is_timed) {
		a->got_cpu_ns = now;
		a->got_cpu_account_ns = VARIANT(account_of)(task);
	}
	if (a->state & ACTIVE) {
		if (!a->next_woke_ns)
			return;
		finish_unseen(a, VARIANT(account_of)(task), a->next_woke_ns);
	}
	begin(a, now);
}

SEC(HOOK "/sched_switch")
int PROGRAM(VARIANT(switched), bool preempt, struct task_struct *prev, struct task_struct *next)
{
	u64 now;

	if (!READ(prev, pid) || !READ(next, pid))
		idles(!READ(next, pid));
	meter_switch(next, READ(next, prio), !IS_UNKNOWN(next) && FIND(next));
	if (IS_UNKNOWN(prev) && IS_UNKNOWN(next))
		return 0;
	now = bpf_ktime_get_ns();
	VARIANT(left_cpu)(preempt, prev, now);
	VARIANT(got_cpu)(prev, next, now);
	return 0;
}

/* The running task calls the kernel. */
SEC(HOOK "/sys_enter")
int PROGRAM(VARIANT(called), struct pt_regs *regs, unsigned long number)
{
	struct activity *a;

	if (number >= CALLS || !(calls[number / CALLS_PER_WORD] >> number % CALLS_PER_WORD & 1))
		return 0;
	a = FIND(CURRENT_TASK());
	if (a && !(a->state & GONE))
		tell(RECORD_CALLED, a->id, bpf_ktime_get_ns(), 0);
	return 0;
}

/* User space reads none of it in /proc: a task that ends meanwhile can hold up the reader there. */
static __always_inline void VARIANT(introduce)(struct record *record, struct task_struct *task,
					       const char *comm)
{
	record->of.task.pid = READ(task, tgid);
	record->of.task.parent = BPF_CORE_READ(task, real_parent, tgid);
	record->of.task.uid =
		is_of_one_user(task) ? BPF_CORE_READ(task, cred, uid.val) : OF_TWO_USERS;
	bpf_probe_read_kernel_str(record->of.task.comm, sizeof(record->of.task.comm), comm);
}

/*
 * Keeps `task` from now on; its first record precedes all others of it. A task that is kept without
 * one is known by its number all the same. The verifier of 5.10 does not see at a second look that
 * there is a record.
 */
static __always_inline bool VARIANT(keep)(struct task_struct *task, const char *comm, u8 follow)
{
	struct activity initial = {
		.accounted_ns = VARIANT(account_of)(task),
		.id = VARIANT(id_of)(task),
		.follow = follow,
	};
	u64 now = bpf_ktime_get_ns();
	struct record *record;

	if (shared.alive >= most_tasks)
		return false;
	if (VARIANT(is_queued)(task))
		begin(&initial, now);
	record = reserve(RECORD_TRACKED, initial.id, now);
	if (!record) {
		if (!KEEP(task, &initial))
			return false;
		__sync_fetch_and_add(&shared.alive, 1);
		return true;
	}
	VARIANT(introduce)(record, task, comm);
	if (!KEEP(task, &initial)) {
		bpf_ringbuf_discard(record, BPF_RB_NO_WAKEUP);
		return false;
	}
	/* It is ordinary until user space has heard of it, and its program may wait for it. */
	bpf_ringbuf_submit(record, BPF_RB_FORCE_WAKEUP);
	__sync_fetch_and_add(&shared.alive, 1);
	return true;
}

SEC(HOOK "/sched_process_fork")
int PROGRAM(VARIANT(forked), struct task_struct *parent, struct task_struct *child)
{
	struct activity *a = FIND(parent);
	u64 before = 0;
	u32 uid;

	if (!a || a->follow == FOLLOW_NOTHING)
		return 0;
	if (READ(child, tgid) != READ(parent, tgid) && a->follow != FOLLOW_CHILDREN)
		return 0;
	uid = BPF_CORE_READ(child, cred, uid.val);
	if (bounds_bursts && uid)
		before = begun(uid, bpf_ktime_get_ns(), FORKS_WINDOW_NS);
	if (before >= FORKS)
		__sync_fetch_and_add(&shared.missed, 1);
	else if (!VARIANT(keep)(child, child->comm, a->follow))
		__sync_fetch_and_add(&shared.lost, 1);
	return 0;
}

static __always_inline void VARIANT(name)(struct activity *a, struct task_struct *task, u32 kind,
					  const char *comm, u64 now)
{
	struct record *record = reserve(kind, a->id, now);

	if (!record)
		return;
	VARIANT(introduce)(record, task, comm);
	submit(record);
}

/* A program that it executes gives it a name, too. */
static __always_inline bool VARIANT(is_in_exec)(struct task_struct *task)
{
	return bpf_core_field_exists(task->in_execve) && READ_BITFIELD(task, in_execve);
}

SEC(HOOK "/task_rename")
int PROGRAM(VARIANT(renamed), struct task_struct *task, const char *comm)
{
	struct activity *a = FIND(task);
	u64 now, id;

	if (!a)
		return 0;
	now = bpf_ktime_get_ns();
	id = VARIANT(id_of)(task);
	if (id != a->id) {
		tell(RECORD_EXITED, a->id, now, 0);
		a->id = id;
		VARIANT(name)(a, task, RECORD_TRACKED, comm, now);
	} else if (!VARIANT(is_in_exec)(task) && may_rename(a, now)) {
		VARIANT(name)(a, task, RECORD_RENAMED, comm, now);
	}
	return 0;
}

/* Told however often the task was renamed before, and when it has the rights of the new program. */
SEC(HOOK "/sched_process_exec")
int PROGRAM(VARIANT(became), struct task_struct *task)
{
	struct activity *a = FIND(task);

	if (a)
		VARIANT(name)(a, task, RECORD_RENAMED, task->comm, bpf_ktime_get_ns());
	return 0;
}

/* A task that is not tracked executed a program: tells of it if that is wanted by its name. */
SEC(HOOK "/sched_process_exec")
int PROGRAM(VARIANT(other_became), struct task_struct *task)
{
	struct running *running;

	if (FIND(task) || !is_wanted(file_name(program_of(task))) ||
	    BPF_CORE_READ(task, cred, user_ns, level) ||
	    begun(BPF_CORE_READ(task, cred, uid.val), bpf_ktime_get_ns(), EXECUTIONS_WINDOW_NS) >=
		    EXECUTIONS)
		return 0;
	running = bpf_ringbuf_reserve(&records, sizeof(*running), 0);
	if (!running)
		return 0;
	describe(running, task);
	bpf_ringbuf_submit(running, BPF_RB_FORCE_WAKEUP);
	return 0;
}

/* No program can give it another policy any more. */
static __always_inline void VARIANT(note_end)(struct task_struct *task)
{
	u64 id = VARIANT(id_of)(task);
	u32 *end = bpf_map_lookup_elem(&ends, &id);

	if (end)
		*end = READ(task, policy) == SCHED_DEADLINE ? END_RESERVED : END_LEFT;
}

/* The last word on a task, also if its last switch was invisible. */
SEC(HOOK "/sched_process_free")
int PROGRAM(VARIANT(freed), struct task_struct *task)
{
	struct activity *a = FIND(task);

	VARIANT(note_end)(task);
	if (!a)
		return 0;
	if (!(a->state & GONE))
		VARIANT(gone)(a, task, bpf_ktime_get_ns());
	FORGET(task);
	return 0;
}
