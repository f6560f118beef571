/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Shared by the parts of the timing exceptions: a thread's state, and the sources of its signals.
 *
 * The rule that makes everything else safe: a thread's state is read and written by that thread
 * alone, in two contexts, its code and its signal handler. While the code changes the state it
 * holds `critical`; while the program must not be interrupted it holds `onbeat_protections_`. Both
 * are counts, because a signal handler of the program's may come in between and use a block or a
 * section. The library's handler that finds either only notes that it came (`pending`) and returns;
 * the code that ends the last of them looks at the note. So the handler runs the rest only where
 * the code could have called it itself, and neither context needs an atomic instruction, only that
 * the compiler keeps the order (volatile, onbeat_barrier).
 */
#ifndef ONBEAT_SRC_WITHIN_H
#define ONBEAT_SRC_WITHIN_H

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "onbeat/within.h"

#ifndef ONBEAT_MAX_DEPTH
#define ONBEAT_MAX_DEPTH 64
#endif

/* The signal that notifies a thread; set by onbeat_notify_install_. */
#define ONBEAT_SIGNAL onbeat_signal_
extern int onbeat_signal_;

/*
 * The signal handler reads thread-local variables without a call into the dynamic linker, which may
 * allocate in glibc. Other C libraries have them at hand anyway, and may refuse this model to
 * dlopen.
 */
#ifdef __GLIBC__
#define ONBEAT_TLS __attribute__((tls_model("initial-exec")))
#else
#define ONBEAT_TLS
#endif

#define onbeat_barrier() __atomic_signal_fence(__ATOMIC_SEQ_CST)

/* Perf's task clock of one thread. */
struct onbeat_perf_clock {
	int fd;
	bool in_kernel; /* it signals also while the thread is in the kernel */
	uint64_t id;    /* the kernel's: the descriptor's number may be used again */
};

/* Where one kind of constraint gets its signals from, and when the next is due. */
struct onbeat_source {
	int64_t armed_ns; /* the expiry it was last set to; INT64_MAX: not set */
	timer_t timer;
	struct onbeat_perf_clock clock;
	bool uncertain; /* a signal of it may have been missed: it is to be set again in any case */
	bool has_timer;
	bool has_clock;
};

/* A block that the thread is in: what is needed once the block's frame is gone. */
struct onbeat_frame {
	struct onbeat_block *block;
	const struct onbeat_site *site;
	uintptr_t stack; /* the stack pointer, nearly, where the block was entered */
	int protections;
	bool checked; /* its body is a protected section, which onbeat_check opens */
};

struct onbeat_thread {
	struct onbeat_frame frames[ONBEAT_MAX_DEPTH];
	volatile sig_atomic_t critical;
	volatile sig_atomic_t pending;
	const struct onbeat_thrown *caught; /* by the innermost handler that is being executed */
	int depth;
	int slot;
	unsigned checks;
	/* While there is such a block, at that depth, cancellation waits; and how it was before. */
	struct onbeat_block *uncancelled;
	int uncancelled_depth, cancel_state, cancel_type;
	pthread_t self;
	struct onbeat_source deadline;
	struct onbeat_source wcet;
	int64_t cpu_at_fork_ns;
	struct onbeat_thread *next;
	struct onbeat_thread **previous;
};

/*
 * How many protected sections this thread is in. Beside its state, which a signal handler that
 * protects itself may not allocate.
 */
extern _Thread_local volatile sig_atomic_t onbeat_protections_ ONBEAT_TLS;

/* thread.c: this thread's state. NULL where it cannot be made, or the end of the program. */
struct onbeat_thread *onbeat_make_thread_(int *error);
struct onbeat_thread *onbeat_thread_(void);
struct onbeat_thread *onbeat_thread_if_any_(void);

/* source.c: sets and clears the two sources. An expiry of INT64_MAX clears. */
void onbeat_deadline_arm_(struct onbeat_thread *thread, int64_t expires_ns);
void onbeat_wcet_arm_(struct onbeat_thread *thread, int64_t expires_ns);
/*
 * Handles the first real-time signal from SIGRTMIN+5 on that has no handler, and gives its number;
 * or -EBUSY.
 */
int onbeat_take_signal_(void (*handler)(int, siginfo_t *, void *));
void onbeat_sources_close_(struct onbeat_thread *thread, bool after_fork);
/* Makes the source of execution-time signals. 0, or -errno. */
int onbeat_wcet_open_(struct onbeat_thread *thread);

/* perf_clock.c, or perf_clock_none.c in the portable form. */
bool onbeat_perf_clock_open_(struct onbeat_perf_clock *clock);
/* INT64_MAX stops it. False once the program has closed it. */
bool onbeat_perf_clock_set_(const struct onbeat_perf_clock *clock, int64_t expires_ns);
void onbeat_perf_clock_close_(const struct onbeat_perf_clock *clock);

/* notify_linux.c or notify_posix.c: how a timer's signal reaches its thread. */
int onbeat_notify_timer_(struct onbeat_thread *thread, clockid_t clock, timer_t *timer);
/* Both: 0, or -errno. */
int onbeat_notify_install_(void);
int onbeat_notify_thread_(struct onbeat_thread *thread);
void onbeat_notify_ended_(struct onbeat_thread *thread);
void onbeat_notify_forked_(void);
/* The stack pointer of what a signal interrupted; 0 where that cannot be known. */
uintptr_t onbeat_notify_stack_(const void *context);
/* Whether a block that was entered at `frame` lies below `stack`: its function has been left. */
bool onbeat_notify_left_(uintptr_t frame, uintptr_t stack);

/* block.c */
extern const struct onbeat_thrown onbeat_nothing_;
void onbeat_leave_critical_(struct onbeat_thread *thread);
void onbeat_handler_(int number, siginfo_t *info, void *context);
void onbeat_misuse_(const char *file, int line, const char *what);

/* benchmark.c */
void onbeat_measured_(struct onbeat_site *site, int64_t duration_ns);

/* Libraries block it in threads of their own. */
static inline void onbeat_unblock_(void)
{
	sigset_t ours;

	sigemptyset(&ours);
	sigaddset(&ours, ONBEAT_SIGNAL);
	pthread_sigmask(SIG_UNBLOCK, &ours, NULL);
}

static inline void onbeat_enter_critical_(struct onbeat_thread *thread)
{
	thread->critical++;
	onbeat_barrier();
}

static inline struct onbeat_block *onbeat_top_(const struct onbeat_thread *thread)
{
	return thread->depth ? thread->frames[thread->depth - 1].block : NULL;
}

static inline int64_t onbeat_clock_(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static inline int64_t onbeat_now_(void)
{
	return onbeat_clock_(CLOCK_MONOTONIC);
}

static inline int64_t onbeat_cpu_now_(void)
{
	return onbeat_clock_(CLOCK_THREAD_CPUTIME_ID);
}

static inline int64_t onbeat_min_(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

#endif
