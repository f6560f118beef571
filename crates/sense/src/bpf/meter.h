/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The meter: the CPU time that tasks run above ordinary effective priority, tracked or not, as the
 * account of the application and of the payer that it is charged to. Included once.
 *
 * A priority may be lent: the owner of a lock with priority inheritance runs at the priority of a
 * task that waits for it, and no budget of the kernel's is enforced then. Such time is charged to
 * the task that lends it, the first of a chain of locks, which is out of its own allowance if it
 * lends more in a window, or to another user's task at all. A watcher reads that, and is woken.
 *
 * Layout, for user space (meter.rs): `slots` has an entry for each CPU, `lenders` one for each task
 * that has anything from here; both can be mapped. `members` says what user space knows of a task,
 * `spent` has the sums. An interval is open in its slot until the next switch; `look` closes it,
 * and opens another, on the CPU that it runs on.
 *
 * A slot changes with its CPU's run queue locked, or in an interrupt of that CPU. Time is the
 * clock's, not the scheduler's account, which lags behind by a tick where no switch ends it.
 */

/* Priorities as the kernel counts them: less is more urgent. */
#define ORDINARY 120
#define ABOVE_ORDINARY 100 /* below it: real-time and deadline tasks */
#define DEADLINE 0         /* below it: deadline tasks */
#define CHAIN 32           /* locks from an owner to a task that lends its own priority */

static __always_inline struct meter_slot *slot_of(u32 cpu)
{
	return bpf_map_lookup_elem(&slots, &cpu);
}

static __always_inline u64 id_of_any(struct task_struct *task)
{
	return (BPF_CORE_READ(task, start_boottime) / NS_PER_TICK) << ID_TID_BITS |
	       (u32)BPF_CORE_READ(task, pid);
}

/*
 * The task whose deadlines `task` has: it waits for a lock that `task` owns, at the end of however
 * long a chain of locks, or is it.
 */
static __always_inline struct task_struct *deadline_of(struct task_struct *task)
{
	void *lent = 0;

	if (bpf_core_field_exists(task->dl.pi_se))
		lent = BPF_CORE_READ(task, dl.pi_se);
	return lent ? lent - bpf_core_field_offset(struct task_struct, dl) : task;
}

/* The task whose real-time priority `task` has, which is `prio`, in the same way. */
static __always_inline struct task_struct *priority_of(struct task_struct *task, int prio)
{
	for (int i = 0; i < CHAIN; i++) {
		struct task_struct *waits;
		int theirs;

		if (!bpf_core_field_exists(task->pi_top_task))
			break;
		waits = BPF_CORE_READ(task, pi_top_task);
		if (!waits)
			break;
		theirs = BPF_CORE_READ(waits, prio);
		if (theirs > prio || BPF_CORE_READ(task, normal_prio) <= prio)
			break;
		task = waits;
		prio = theirs;
	}
	return task;
}

static __always_inline void add(enum spender kind, u32 number, u64 ns)
{
	struct spender_key key = { .kind = kind, .number = number };
	u64 *sum = bpf_map_lookup_elem(&spent, &key);
	u64 none = 0;

	if (!sum) {
		bpf_map_update_elem(&spent, &key, &none, BPF_NOEXIST);
		sum = bpf_map_lookup_elem(&spent, &key);
	}
	if (sum)
		__sync_fetch_and_add(sum, ns);
}

static __always_inline struct lender *lender_of(u32 place, u64 id)
{
	struct lender *lender = place ? bpf_map_lookup_elem(&lenders, &place) : 0;

	return lender && lender->id == id ? lender : 0;
}

static __always_inline void overdraw(struct lender *lender)
{
	u64 id = lender->id;

	if (lender->is_over)
		return;
	lender->is_over = true;
	/* Where there is no room, it is awake. */
	bpf_ringbuf_output(&overdrawn, &id, sizeof(id), BPF_RB_FORCE_WAKEUP);
}

static __always_inline void lend(struct meter_slot *slot, u64 ns, u64 now)
{
	struct lender *lender = lender_of(slot->place, slot->payer);

	if (!lender)
		return;
	if (lender->window != now / LENDING_WINDOW_NS) {
		lender->window = now / LENDING_WINDOW_NS;
		lender->lent_ns = 0;
	}
	__sync_fetch_and_add(&lender->lent_ns, ns);
	if (lender->lent_ns > lender->allowance_ns)
		overdraw(lender);
}

/* The task whose priority `task` has, which is `prio`. Its deadlines are those that `from` has. */
static __always_inline struct task_struct *payer_of(struct task_struct *task,
						    struct task_struct *from, int prio)
{
	if (prio < DEADLINE)
		return deadline_of(from);
	return prio < ABOVE_ORDINARY ? priority_of(task, prio) : task;
}

/* `payer`, who is that member, may lend nothing to `task` if that is another user's. */
static __always_inline void keep_apart(struct task_struct *payer, struct task_struct *task,
				       struct member *member, u64 id)
{
	struct lender *lender = member ? lender_of(member->place, id) : 0;

	if (lender && payer != task &&
	    BPF_CORE_READ(payer, cred, uid.val) != BPF_CORE_READ(task, cred, uid.val)) {
		lender->heir = id_of_any(task);
		overdraw(lender);
	}
}

/* Charges the open interval. */
static __always_inline void settle(struct meter_slot *slot, u64 now)
{
	u64 ns = now > slot->since_ns ? now - slot->since_ns : 0;

	slot->since_ns = now;
	if (!slot->is_above)
		return;
	if (slot->application)
		add(SPENDER_APPLICATION, slot->application, ns);
	if (slot->account)
		add(SPENDER_ACCOUNT, slot->account, ns);
	if (slot->is_lent)
		lend(slot, ns, now);
}

/*
 * Whether somebody has given `task`, which runs at `prio`, a real-time priority: all that is given
 * from here ends with a fork, and so does what RealtimeKit gives.
 */
static __always_inline bool is_others(struct task_struct *task, int prio)
{
	return prio >= DEADLINE && prio < ABOVE_ORDINARY &&
	       !BPF_CORE_READ_BITFIELD_PROBED(task, sched_reset_on_fork);
}

/* Opens an interval of `task`, which runs at `prio`. Its deadlines are those that `from` has. */
static __always_inline void open(struct meter_slot *slot, struct task_struct *task,
				 struct task_struct *from, int prio, bool is_tracked, u64 now)
{
	struct task_struct *payer;
	struct member *member;
	u64 id;

	slot->since_ns = now;
	slot->tid = BPF_CORE_READ(task, pid);
	slot->is_above = false;
	if (prio >= ORDINARY)
		return;
	payer = payer_of(task, from, prio);
	id = id_of_any(payer);
	slot->payer = id;
	slot->is_lent = payer != task;
	member = bpf_map_lookup_elem(&members, &id);
	slot->application = member ? member->application : 0;
	slot->account = member ? member->account : 0;
	slot->place = member ? member->place : 0;
	slot->is_above = prio < ABOVE_ORDINARY || (is_tracked && member);
	keep_apart(payer, task, member, id);
	if (!slot->is_lent && is_others(task, prio))
		slot->real_time_ns = now;
}

/* A switch: an ordinary task that is not tracked costs a load and a test, before and after. */
static __always_inline void meter_switch(struct task_struct *next, int prio, bool is_tracked)
{
	struct meter_slot *slot = slot_of(bpf_get_smp_processor_id());
	bool opens = prio < ABOVE_ORDINARY || is_tracked;
	u64 now;

	if (!slot || !(slot->tid || opens))
		return;
	now = bpf_ktime_get_ns();
	if (slot->tid)
		settle(slot, now);
	slot->tid = 0;
	if (opens && !(BPF_CORE_READ(next, flags) & PF_KTHREAD))
		open(slot, next, next, prio, is_tracked, now);
}

/* The application that the task of this id works for; 0 if user space has not said it. */
static __always_inline u32 application_of(u64 id)
{
	struct member *member = bpf_map_lookup_elem(&members, &id);

	return member ? member->application : 0;
}

/* The tracked task of this id ran here until now. */
static __always_inline void left(u64 id, u64 now)
{
	struct meter_slot *slot = slot_of(bpf_get_smp_processor_id());

	if (!slot)
		return;
	slot->left_id = id;
	slot->left_ns = now;
}

/*
 * The CPU begins to be idle, or ends. It counts as busy all the time if it is for nine tenths of
 * it, so a moment of idleness takes nine times as long from that.
 */
static __always_inline void idles(bool begins)
{
	struct meter_slot *slot = slot_of(bpf_get_smp_processor_id());
	u64 now = bpf_ktime_get_ns();
	u64 since_ns;

	if (!slot)
		return;
	if (begins) {
		slot->left_ns = now;
		if (slot->busy_since_ns < now - BUSY_MOST_NS)
			slot->busy_since_ns = now - BUSY_MOST_NS;
		return;
	}
	since_ns = slot->busy_since_ns + (now - slot->left_ns) * 10;
	slot->busy_since_ns = since_ns < now ? since_ns : now;
}

/* For how long of its wait this CPU ran others than the task's, who keep it busy. */
static __always_inline u64 crowded_ns(u64 id, u64 waited_ns, u64 now)
{
	struct meter_slot *slot = slot_of(bpf_get_smp_processor_id());
	u64 others_ns;

	if (!slot || waited_ns < CROWDED_NS || now - slot->busy_since_ns < BUSY_NS)
		return 0;
	others_ns = now - slot->left_ns;
	if (others_ns < waited_ns && application_of(slot->left_id) == application_of(id))
		return others_ns;
	return waited_ns;
}

static __always_inline u32 cpu_of(struct task_struct *task)
{
	struct task_struct___before_5_16 *old = (void *)task;

	if (bpf_core_field_exists(task->thread_info.cpu))
		return BPF_CORE_READ(task, thread_info.cpu);
	return BPF_CORE_READ(old, cpu);
}

/*
 * `owner` is about to run at the priority of `waiter`, the first of those that wait for its locks,
 * or at its own again. Its run queue is locked, and it knows its waiter, but has its old priority.
 * One that sleeps needs to be told apart, too: it would wake with the budget of another user's.
 */
SEC("raw_tp/sched_pi_setprio")
int BPF_PROG(inherited, struct task_struct *owner, struct task_struct *waiter)
{
	int prio = BPF_CORE_READ(owner, normal_prio);
	int theirs = waiter ? BPF_CORE_READ(waiter, prio) : prio;
	/* The owner does not have the waiter's deadlines yet. */
	struct task_struct *from = waiter && theirs < DEADLINE ? waiter : owner;
	struct meter_slot *slot;
	u64 now;

	if (theirs < prio)
		prio = theirs;
	if (!BPF_CORE_READ(owner, on_cpu)) {
		struct task_struct *payer = payer_of(owner, from, prio);
		u64 id = id_of_any(payer);

		keep_apart(payer, owner, bpf_map_lookup_elem(&members, &id), id);
		return 0;
	}
	slot = slot_of(cpu_of(owner));
	if (!slot)
		return 0;
	now = bpf_ktime_get_ns();
	if (slot->tid)
		settle(slot, now);
	slot->tid = 0;
	open(slot, owner, from, prio, true, now);
	return 0;
}

/* Runs where user space wants it, in an interrupt: what runs there is charged up to now. */
SEC("raw_tp")
int look(void *ctx)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	struct meter_slot *slot = slot_of(bpf_get_smp_processor_id());
	int prio = BPF_CORE_READ(task, prio);
	u64 now = bpf_ktime_get_ns();
	bool is_known;

	if (!slot)
		return 0;
	is_known = slot->tid && slot->tid == (u32)BPF_CORE_READ(task, pid);
	if (is_known)
		settle(slot, now);
	slot->tid = 0;
	if ((is_known || prio < ABOVE_ORDINARY) && !(BPF_CORE_READ(task, flags) & PF_KTHREAD))
		open(slot, task, task, prio, is_known, now);
	return 0;
}
