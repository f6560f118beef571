/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The records and requests between the tracer and user space: the records in the ring buffer, and
 * the page of state both can see. wire.rs, partners.rs and shared.rs have these types from the
 * programs' BTF.
 */
#ifndef ONBEAT_RECORD_H
#define ONBEAT_RECORD_H

enum record_bits {
	/*
	 * A thread: its number in the low bits (the kernel's PID_MAX_LIMIT is 1 << 22), above them
	 * the clock ticks since boot at which it started.
	 */
	ID_TID_BITS = 22,
	/*
	 * In `waker`: no thread did it, but a timer, and the other bits are how long before the
	 * wakeup it was to expire, in ns. A thread's number is below; it is the task's own after
	 * its wait for a disk.
	 */
	WOKEN_BY_TIMER = 1U << 31,
	/* In `uid`: it has the rights of more than one user. No user has this number. */
	OF_TWO_USERS = ~0U,
};

enum record_kind {
	RECORD_TRACKED,
	RECORD_RENAMED,
	RECORD_BURST,
	RECORD_EXHAUSTED,
	RECORD_YIELDED,
	RECORD_WAKEUP,
	RECORD_EXITED,
	RECORD_SUPPRESSED, /* marks; how many: in waker */
	/* The marks of a task, in the order of mark.h. */
	RECORD_JOB_BEGAN,
	RECORD_JOB_ENDED,
	RECORD_MISSED_DEADLINE,
	RECORD_REALTIME_STARTED,
	RECORD_REALTIME_EXITED,
	RECORD_CALLED, /* the kernel: one of the system calls that are asked for */
	RECORD_WAITED, /* was ready, but another process's thread had the CPU: waker, or 0: many had */
};

/*
 * Every record but those of programs has this size: with the ring buffer's own header of 8 bytes it
 * is one cache line, and lies in one.
 */
struct record {
	u64 id;
	u64 at_ns; /* a burst's end */
	union {
		struct {
			u64 woke_ns;
			u64 first_ran_ns;
			u64 executed_ns;
			u32 preempted;
			u32 exhausted;
		} burst;
		struct {
			char comm[16];
			u32 pid;
			u32 parent; /* the process that started its own */
			u32 uid;    /* or OF_TWO_USERS */
		} task;
		struct {
			u64 woke_ns;     /* its present burst */
			u64 executed_ns; /* in its life */
			u64 period_ns;
			u32 permille;
		} mark;
	} of;
	u32 waker;
	enum record_kind kind;
};

/* The request of user space to the task iterator. */
enum request {
	REQUEST_TRACK,
	REQUEST_UNTRACK,
};

/* The tasks that are tracked with a task. */
enum follow {
	FOLLOW_NOTHING,
	FOLLOW_THREADS,  /* that its process starts */
	FOLLOW_CHILDREN, /* those, and the processes that it starts */
};

/* The wakeups of tasks that are not tracked. */
struct partner_key {
	u64 waker;
	u64 wakee;
};

struct partner {
	u64 count;
	u64 pid; /* the wakee's process, and its name */
	char comm[16];
};

/* The name of a program's file, or the beginning of a longer one; filled up with zeros. */
struct program {
	char name[32];
};

/*
 * A process and its program: a record that is told when it executes that, and what the iterator of
 * programs writes, as far as `bytes` of its path. They are the parts of the path, from its end to
 * its beginning, each with a zero; an empty one ends a path that is told whole.
 */
#define PATH_BYTES 512
#define NAME_BYTES 256 /* of a file, at most */

struct running {
	u64 id;
	u64 groups; /* told apart by this number, as long as they are the same */
	u32 uid;
	u32 bytes;
	char path[PATH_BYTES + NAME_BYTES];
};

/* The end of a task that user space asks about. */
enum end {
	END_UNKNOWN,  /* It lives, or is not freed yet. */
	END_RESERVED, /* It was under SCHED_DEADLINE to its end. */
	END_LEFT,     /* It had another policy by then. */
};

/* Who CPU time above ordinary priority is charged to. */
enum spender {
	SPENDER_APPLICATION,
	SPENDER_ACCOUNT,
};

struct spender_key {
	u32 kind;
	u32 number;
};

/* What user space knows of a task. Numbers are its own; 0 is none. */
struct member {
	u32 application;
	u32 account;
	u32 place; /* in the table of lenders */
	u32 unused;
};

#define LENDING_WINDOW_NS 100000000

/* A task that has a priority which others may inherit. */
struct lender {
	u64 id; /* 0: nobody's place */
	u64 window;
	u64 lent_ns; /* in that window */
	u64 allowance_ns;
	u64 is_over;
	u64 heir; /* of another user: the id of the task that it was lent to */
};

/* What runs on a CPU, if it is a member or above ordinary priority. */
struct meter_slot {
	u64 since_ns;
	u64 payer;       /* the id of the task whose priority it has */
	u32 tid;         /* 0: nothing that counts */
	u32 application; /* of the payer, as all below */
	u32 account;
	u16 place;
	u8 is_above; /* ordinary priority, and charged */
	u8 is_lent;
	u64 real_time_ns;  /* when somebody else's real-time task began to run */
	u64 left_id;       /* the tracked task that ran here last */
	u64 left_ns;       /* when it left, or the CPU had nothing more to run */
	u64 busy_since_ns; /* all the time, or nearly; with this, a cache line */
};

/* The number of tasks that one reading of the iterator dismisses. */
#define UNWANTED 64

struct shared {
	u64 lost;   /* records that found no room, ever */
	u64 missed; /* tasks that were not tracked because their user began too many */
	u64 alive;  /* tasks tracked now */
	u64 wanted; /* whom to track: a thread's number */
	enum request request;
	enum follow follow;
	u32 found;   /* answer: matching tasks */
	u32 added;   /* answer: of them newly tracked */
	u32 refused; /* answer: of them those there was no room for */
	u32 unwanted_count;
	u64 unwanted[UNWANTED]; /* whom to untrack: ids */
};

#endif
