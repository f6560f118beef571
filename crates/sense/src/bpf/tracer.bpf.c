// SPDX-License-Identifier: GPL-2.0-only
/*
 * Writes one record per burst of a tracked task, when the task blocks.
 *
 * The programs stand in tracepoints.h, marks.h and task_iterator.h, and are compiled twice. On BTF
 * tracepoints a task's state is in its BPF task storage, one cache line, and an untracked task
 * costs one load and one test: a task that no BPF program keeps storage for is left at once. Where
 * the kernel has no such tracepoints or no such storage, raw tracepoints and a hash map do, at
 * three times the cost on a busy machine (cache and TLB misses). User space loads one of the two.
 *
 * Some switches are invisible here: a virtual machine may hide those to and from its supervisor. So
 * no step takes for granted that the one before it was seen. CPU time is always the difference of
 * the scheduler's own account, so that bursts add up to it exactly, whatever was missed.
 */
#include "vmlinux.h"
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "mark.h"
#include "record.h"

char LICENSE[] SEC("license") = "GPL";

#define TASK_DEAD 0x80
#define PF_KTHREAD 0x00200000
#define SCHED_DEADLINE 6
#define NS_PER_TICK 10000000 /* of /proc/TID/stat: USER_HZ is 100 */
/* preempt_count: hard interrupts and NMIs above bit 16, and bit 8 while a soft one is served */
#define INTERRUPT_MASK 0x00ff0100
#define CLOCKS 4 /* of timers that hard interrupts serve */

enum state {
	ACTIVE = 1 << 0,    /* a burst is under way */
	EXHAUSTED = 1 << 1, /* its budget ran out */
	GONE = 1 << 2,      /* the task has exited */
};

struct activity {
	u64 woke_ns;
	u64 first_ran_ns; /* between bursts: when the last one ended */
	u64 next_woke_ns; /* the wakeup of the next burst; 0: none seen */
	u64 accounted_ns; /* CPU time reported so far, on the scheduler's account */
	u64 id;
	u32 waker;
	u32 next_waker;
	u32 preempted;
	u8 state;
	u8 follow;
	u8 is_timed; /* its CPU time is wanted in the middle of a burst */
	u8 merges;   /* the states of bursts that were not told yet and are told with the next */
	u32 bursts_window;
	u32 window_bursts; /* told in that window, or not */
	/* For a task that is timed or marks its work; on a cache line of its own. */
	u64 got_cpu_ns;
	u64 got_cpu_account_ns; /* its CPU time then */
	u64 marked_account_ns;  /* told with its last mark */
	u32 window;
	u32 window_tick;    /* the last in which a mark looked at the clock */
	u32 window_marks;   /* in that window */
	u32 window_notices; /* of them, of missed deadlines */
	u32 suppressed;     /* not told since the last that was told */
	u32 window_names;   /* that it gave itself in that window */
	u64 merged_woke_ns; /* when the first burst woke that was not told yet */
	u64 ready_ns;       /* since when it waits for a CPU */
	u64 waited_told_ns; /* when a wait was last told */
	u64 crowded_ns;     /* that it waited behind many since then */
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct activity);
} activities SEC(".maps");

/*
 * A flood of marks must cost no other task an event, nor much of a CPU to read. Each task has
 * MARKS_OWN marks told in a window, whatever happens, and up to MARKS_MOST only while most of the
 * buffer is empty. After the first number, further missed deadlines say nothing new.
 */
#define MARKS_WINDOW_NS 100000000
#define MARKS_OWN 64
#define MARKS_MOST 2560
#define MARKS_SHARE_OF_BUFFER 4
/* Nor has a user more names than that in a window. */
#define NAMES_OWN 8

/*
 * Where bursts are bounded (a tracked program may mean harm), each task has BURSTS_OWN bursts told
 * by themselves in a window, and some more while most of the buffer is empty. The others are told
 * as one with the next that is told: no CPU time is lost. As many tasks as one user may have
 * tracked leave room in the buffer for others'.
 */
#define BURSTS_WINDOW_NS 100000000
#define BURSTS_OWN 200
#define BURSTS_MOST 400

/*
 * A wait is told that is this long: shorter ones are the kernel's own work. Of one task no more
 * than one is told in a while, because the first says enough. Who kept the CPU had a turn: the
 * shortest that the kernel gives by default is 0.7 ms, on one CPU with exact slices (Linux 7.3).
 */
#define WAIT_NS 1000000
#define TURN_NS 600000
#define WAIT_TOLD_EVERY_NS 5000000

/*
 * A wait behind many short turns, of which several of this length make one that is told, if their
 * CPU has been busy for so long: longer than a frame takes a display server to draw. That it was
 * busy before idle moments counts up to a bound.
 */
#define CROWDED_NS 100000
#define BUSY_NS 20000000
#define BUSY_MOST_NS 200000000

/* The same by a task's address, for raw tracepoints. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, u64);
	__type(value, struct activity);
} activities_raw SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20);
} records SEC(".maps");

/*
 * Read and emptied a few times a second. A task that wakes ever new threads fills it, and the
 * others' count begins at the next reading.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 512);
	__type(key, struct partner_key);
	__type(value, struct partner);
} partners SEC(".maps");

/*
 * The names of programs: which processes run them is told, and executions by tasks that are not
 * tracked are told at once. Each user has EXECUTIONS told in a window, because user space looks at
 * each: a desktop's session starts ten at a time. In a user namespace, one user has thousands of
 * numbers: nothing is told from there. Where bursts are bounded, each user but root has FORKS tasks
 * tracked in a window because a tracked one began them: each costs user space 0.3 ms. Those beyond
 * count as missed: user space looks for those that stay.
 */
#define EXECUTIONS_WINDOW_NS 1000000000
#define EXECUTIONS 16
#define FORKS_WINDOW_NS 500000000
#define FORKS 100

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, struct program);
	__type(value, u8);
} programs SEC(".maps");

/* Where the iterator of programs, of which one runs at a time, makes what it writes. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct running);
} a_program SEC(".maps");

struct beginnings {
	u64 window;
	u64 count;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 2048);
	__type(key, u64);
	__type(value, struct beginnings);
} begun_by SEC(".maps");

/*
 * How tasks with reservations end, tracked or not: a task that left SCHED_DEADLINE while it slept
 * may have left its bandwidth in the kernel's account. User space adds and removes them.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, u64);
	__type(value, u32);
} ends SEC(".maps");

/* Of the meter (meter.h). */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct meter_slot);
} slots SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 4096);
	__type(key, u32);
	__type(value, struct lender);
} lenders SEC(".maps");

/* Wakes who looks at the lenders. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} overdrawn SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 8192);
	__type(key, u64);
	__type(value, struct member);
} members SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 8192);
	__type(key, struct spender_key);
	__type(value, u64);
} spent SEC(".maps");

const volatile u64 most_tasks = 1;
const volatile bool tell_partners = false;
const volatile bool raw_wakeups = false;
const volatile bool bounds_bursts = false;
const volatile u64 buffer_bytes = 0;
/* The beginnings of these system calls are told, a bit for each, and no bursts. */
#define CALLS 1024
#define CALLS_PER_WORD 64
const volatile bool tells_calls = false;
const volatile u64 calls[CALLS / CALLS_PER_WORD] = {};
/*
 * Where a CPU's preempt_count lies, seen from its run queue; user space finds both in the kernel's
 * BTF. A ksym would be plainer, but needs CONFIG_KALLSYMS_ALL. 0: not known.
 */
const volatile s64 preempt_count_from_rq = 0;
/* The same of its timers (hrtimer_bases), and of the timer of its tick, which wakes no thread. */
const volatile s64 timers_from_rq = 0;
const volatile s64 tick_from_rq = 0;

struct shared shared;

/* Not read. With them, the types are in the programs' BTF. */
const volatile struct record a_record = {};
const volatile struct running a_running = {};
const volatile enum record_bits some_bits = 0;
const volatile enum end an_end = 0;
const volatile enum spender a_spender = 0;

static __always_inline u32 tid_of(u64 id)
{
	return id & ((1 << ID_TID_BITS) - 1);
}

static __always_inline struct record *reserve(enum record_kind kind, u64 id, u64 at_ns)
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

/*
 * User space reads the buffer at its own pace, but is woken when half of it is full: what comes
 * faster than it reckoned with is not lost. It sleeps only while the buffer is empty, so one waking
 * is enough; as another CPU can add a record between this one and the look at how many there are, a
 * few more do it, too.
 */
#define WAKING_PART 16

static __always_inline void submit(struct record *record)
{
	u64 beyond_half = bpf_ringbuf_query(&records, BPF_RB_AVAIL_DATA) - buffer_bytes / 2;

	bpf_ringbuf_submit(record, beyond_half < buffer_bytes / WAKING_PART ? BPF_RB_FORCE_WAKEUP
									    : BPF_RB_NO_WAKEUP);
}

static __always_inline void tell(enum record_kind kind, u64 id, u64 at_ns, u32 waker)
{
	struct record *record = reserve(kind, id, at_ns);

	if (!record)
		return;
	record->waker = waker;
	submit(record);
}

/* User space is to hear of it now. */
static __always_inline void tell_at_once(enum record_kind kind, u64 id, u64 at_ns)
{
	struct record *record = reserve(kind, id, at_ns);

	if (!record)
		return;
	record->waker = 0;
	bpf_ringbuf_submit(record, BPF_RB_FORCE_WAKEUP);
}

static __always_inline void begin(struct activity *a, u64 first_ran_ns)
{
	u64 woke_ns = a->next_woke_ns;

	a->woke_ns = woke_ns && woke_ns < first_ran_ns ? woke_ns : first_ran_ns;
	a->first_ran_ns = first_ran_ns;
	a->waker = a->next_waker;
	a->next_woke_ns = 0;
	a->next_waker = 0;
	if (!a->merges)
		a->preempted = 0;
	a->state = ACTIVE;
}

/* Whether a burst of the task is told by itself. */
static __always_inline bool may_burst(struct activity *a, u64 now)
{
	u32 window = now / BURSTS_WINDOW_NS;

	if (a->bursts_window != window) {
		a->bursts_window = window;
		a->window_bursts = 0;
	}
	if (++a->window_bursts <= BURSTS_OWN)
		return true;
	return a->window_bursts <= BURSTS_MOST && bpf_ringbuf_query(&records, BPF_RB_AVAIL_DATA) <
							  buffer_bytes / MARKS_SHARE_OF_BUFFER;
}

/* The CPU time that was not reported yet: more than all may have been, by a clock that is ahead. */
static __always_inline u64 not_reported(struct activity *a, u64 account_ns)
{
	return account_ns > a->accounted_ns ? account_ns - a->accounted_ns : 0;
}

/* The thread that woke a task, as far as it was one. */
static __always_inline u32 waking_thread(u32 waker)
{
	return waker & WOKEN_BY_TIMER ? 0 : waker;
}

static __always_inline void finish(struct activity *a, u64 account_ns, u64 blocked_ns)
{
	u64 executed_ns = not_reported(a, account_ns);
	u64 woke_ns = a->woke_ns;
	struct record *record;

	if (a->merges) {
		woke_ns = a->merged_woke_ns;
		a->waker = waking_thread(a->waker);
	}
	if (bounds_bursts && !may_burst(a, blocked_ns)) {
		a->merged_woke_ns = woke_ns;
		a->merges |= a->state | ACTIVE;
		a->first_ran_ns = blocked_ns;
		a->state = 0;
		return;
	}
	record = tells_calls ? 0 : reserve(RECORD_BURST, a->id, blocked_ns);
	if (record) {
		u64 first_ran_ns = a->first_ran_ns;

		/* The account says it ran before it was seen to: its first switch was invisible. */
		if (first_ran_ns + executed_ns > blocked_ns)
			first_ran_ns = blocked_ns - executed_ns;
		record->of.burst.woke_ns = woke_ns;
		record->of.burst.first_ran_ns = first_ran_ns > woke_ns ? first_ran_ns : woke_ns;
		record->of.burst.executed_ns = executed_ns;
		record->of.burst.preempted = a->preempted;
		record->of.burst.exhausted = (a->state | a->merges) & EXHAUSTED;
		record->waker = a->waker;
		submit(record);
	}
	a->accounted_ns += executed_ns;
	a->first_ran_ns = blocked_ns;
	a->merges = 0;
	a->state = 0;
}

/* Begins a burst whose first switch was invisible: it has run as long as the account says. */
static __always_inline void begin_unseen(struct activity *a, u64 account_ns, u64 now)
{
	u64 first_ran_ns = now - not_reported(a, account_ns);

	if (first_ran_ns < a->first_ran_ns)
		first_ran_ns = a->first_ran_ns;
	if (first_ran_ns < a->next_woke_ns)
		first_ran_ns = a->next_woke_ns;
	begin(a, first_ran_ns);
}

/* Ends a burst whose last switch was invisible: it ran as long as the account says. */
static __always_inline void finish_unseen(struct activity *a, u64 account_ns, u64 now)
{
	u64 blocked_ns = a->first_ran_ns + not_reported(a, account_ns);

	finish(a, account_ns, blocked_ns < now ? blocked_ns : now);
}

static __always_inline void count_anew_in_a_new_window(struct activity *a, u64 now)
{
	u32 window = now / MARKS_WINDOW_NS;

	if (a->window == window)
		return;
	a->window = window;
	a->window_marks = 0;
	a->window_notices = 0;
	a->window_names = 0;
}

/* Whether one more name that the task gives itself is told. */
static __always_inline bool may_rename(struct activity *a, u64 now)
{
	count_anew_in_a_new_window(a, now);
	return a->window_names++ < NAMES_OWN;
}

/* Whether one more mark of the task is told. A flood of them reads the clock once a tick. */
static __always_inline bool may_mark(struct activity *a, u32 kind)
{
	u32 tick = bpf_jiffies64();

	if (a->window_tick != tick) {
		a->window_tick = tick;
		count_anew_in_a_new_window(a, bpf_ktime_get_ns());
	}
	if (kind == RECORD_MISSED_DEADLINE && a->window_notices++ >= MARKS_OWN)
		return false;
	if (a->window_marks++ < MARKS_OWN)
		return true;
	return a->window_marks <= MARKS_MOST && bpf_ringbuf_query(&records, BPF_RB_AVAIL_DATA) <
							buffer_bytes / MARKS_SHARE_OF_BUFFER;
}

static __always_inline bool is_in_interrupt(void *rq)
{
	u32 preempt_count = INTERRUPT_MASK;

	bpf_probe_read_kernel(&preempt_count, sizeof(preempt_count), rq + preempt_count_from_rq);
	return preempt_count & INTERRUPT_MASK;
}

/*
 * The timer whose expiry this CPU serves. Each clock has its own timers: monotonic, real, boot and
 * TAI time. Those that are served in soft interrupts follow in the array, and are left aside: other
 * interrupts may come meanwhile.
 */
static __always_inline struct hrtimer *served_timer(struct hrtimer_cpu_base *timers,
						    struct hrtimer_clock_base **base)
{
	void *first = (void *)timers + bpf_core_field_offset(struct hrtimer_cpu_base, clock_base);

	for (u32 clock = 0; clock < CLOCKS; clock++) {
		struct hrtimer *timer;

		*base = first + clock * bpf_core_type_size(struct hrtimer_clock_base);
		timer = BPF_CORE_READ(*base, running);
		if (timer)
			return timer;
	}
	return 0;
}

/* That a timer woke a task here, and how long before that it was to expire; 0 if none did. */
static __always_inline u32 by_timer(void *rq, u64 now)
{
	struct hrtimer_clock_base *base = 0;
	struct hrtimer *timer;
	u64 late_ns;

	if (!timers_from_rq || !bpf_core_field_exists(base->running))
		return 0;
	timer = served_timer(rq + timers_from_rq, &base);
	if (!timer || (void *)timer == rq + tick_from_rq)
		return 0;
	late_ns = now - (BPF_CORE_READ(timer, _softexpires) - BPF_CORE_READ(base, offset));
	return late_ns < WOKEN_BY_TIMER ? WOKEN_BY_TIMER | late_ns : 0;
}

/*
 * The number of executions, or of forks, by the user in this window, before this one. They are told
 * apart by the window's length.
 */
static __always_inline u64 begun(u32 uid, u64 now, u64 window_ns)
{
	struct beginnings first = { .window = now / window_ns, .count = 1 };
	u64 key = window_ns << 32 | uid;
	struct beginnings *of_user = bpf_map_lookup_elem(&begun_by, &key);

	if (!of_user) {
		bpf_map_update_elem(&begun_by, &key, &first, BPF_ANY);
		return 0;
	}
	if (of_user->window != first.window) {
		of_user->window = first.window;
		of_user->count = 0;
	}
	/* To add and read in one takes Linux 5.12. So another CPU may have the same number. */
	return of_user->count++;
}

/* Whether user space wants the task of this id to be dismissed. */
static __always_inline bool is_unwanted(u64 id)
{
	for (u32 i = 0; i < UNWANTED && i < shared.unwanted_count; i++)
		if (shared.unwanted[i] == id)
			return true;
	return false;
}

#include "meter.h"
#include "programs.h"

/*
 * IS_UNKNOWN stands on the busiest paths alone. For each pointer of a task that is followed, the
 * verifier looks through all types of the kernel four times, 1 ms in all, and a program that is to
 * be run waits for it.
 */

/* These expand the program's name before libbpf's macros paste it. */
#define PROGRAM(name, ...) BPF_PROG(name, __VA_ARGS__)
#define KPROBE(name, ...) BPF_KPROBE(name, __VA_ARGS__)

#define VARIANT(name) name
#define HOOK "tp_btf"
#define READ(task, field) ((task)->field)
#define READ_BITFIELD(task, field) BPF_CORE_READ_BITFIELD(task, field)
#define CURRENT_TASK() bpf_get_current_task_btf()
#define IS_UNKNOWN(task) (!(task)->bpf_storage)
#define FIND(task) bpf_task_storage_get(&activities, task, 0, 0)
#define KEEP(task, initial) \
	(!!bpf_task_storage_get(&activities, task, initial, BPF_LOCAL_STORAGE_GET_F_CREATE))
#define FORGET(task) bpf_task_storage_delete(&activities, task)
#include "tracepoints.h"
#include "marks.h"
#include "task_iterator.h"

#undef VARIANT
#undef HOOK
#undef READ
#undef READ_BITFIELD
#undef CURRENT_TASK
#undef IS_UNKNOWN
#undef FIND
#undef KEEP
#undef FORGET

static __always_inline struct activity *find_by_address(u64 task)
{
	return bpf_map_lookup_elem(&activities_raw, &task);
}

static __always_inline bool keep_by_address(u64 task, struct activity *initial)
{
	return !bpf_map_update_elem(&activities_raw, &task, initial, BPF_NOEXIST);
}

static __always_inline void forget_by_address(u64 task)
{
	bpf_map_delete_elem(&activities_raw, &task);
}

#define VARIANT(name) name##_raw
#define HOOK "raw_tp"
#define READ(task, field) BPF_CORE_READ(task, field)
#define READ_BITFIELD(task, field) BPF_CORE_READ_BITFIELD_PROBED(task, field)
#define CURRENT_TASK() ((struct task_struct *)bpf_get_current_task())
#define IS_UNKNOWN(task) false
#define FIND(task) find_by_address((u64)(task))
#define KEEP(task, initial) keep_by_address((u64)(task), initial)
#define FORGET(task) forget_by_address((u64)(task))
#include "tracepoints.h"
#include "marks.h"
#include "task_iterator.h"
