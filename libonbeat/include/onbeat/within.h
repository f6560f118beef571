/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Timing constraints as exceptions, for C.
 *
 * A block of code gets a deadline or a limit on its execution time. If it does not end in time, it
 * is left and its handler runs, which also runs if the block reaches its end too late. A checked
 * block is left where it calls onbeat_check(), the other kind at once, wherever it is. After T.
 * Cucinotta and D. Faggioli, "Handling Timing Constraints Violations in Soft Real-Time Applications
 * as Exceptions", whose words and requirements (section 4) these are.
 *
 *     onbeat_try_checked_rel (ONBEAT_MS(12)) {
 *             for (int slice = 0; slice < SLICES; slice++) {
 *                     decode(frame, slice, picture);
 *                     onbeat_check();
 *             }
 *     }
 *     onbeat_finally {
 *             release(frame);
 *     }
 *     onbeat_handle
 *             onbeat_when (onbeat_deadline_violation) {
 *                     picture = previous;
 *             }
 *     onbeat_end;
 *
 * MUST NOT: leave a block, a `finally` or a `when` by return, goto, break, continue or longjmp past
 * its `end`. With ONBEAT_DEBUG in the environment the library says where that was done, and aborts.
 *
 * MUST: declare volatile what a block changes and its `finally`, its handlers or the code after
 * them read: a violation is a longjmp, and other variables may come back with older values.
 *
 * In a checked block anything may be done. The others are left between any two instructions that
 * are neither in onbeat_within_disable ... _enable nor in a `finally`. onbeat_within(7) says what
 * MUST be protected then, and what MUST NOT be done in a block.
 *
 * C++: the destructors of automatic objects in a block are NOT run when it is left; within.hpp has
 * blocks that run them. With ONBEAT_SHORT_NAMES, include other headers before this one.
 */
#ifndef ONBEAT_WITHIN_H
#define ONBEAT_WITHIN_H

#include <setjmp.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Times are nanoseconds; absolute ones are readings of CLOCK_MONOTONIC. ONBEAT_MS(0.5) is half. */
#define ONBEAT_NS(n) ((int64_t)(n))
#define ONBEAT_US(n) ((int64_t)((n)*INT64_C(1000)))
#define ONBEAT_MS(n) ((int64_t)((n)*INT64_C(1000000)))
#define ONBEAT_S(n) ((int64_t)((n)*INT64_C(1000000000)))

/* No constraint: what onbeat_remaining() says outside every constrained block. */
#define ONBEAT_FOREVER INT64_MAX

/* The kind of an exception. Kinds form a tree: a handler for one also takes its sub-kinds. */
struct onbeat_type {
	const char *name;
	const struct onbeat_type *super;
};

extern const struct onbeat_type onbeat_exception;
extern const struct onbeat_type onbeat_timing_constraint_violation;
extern const struct onbeat_type onbeat_deadline_violation;
extern const struct onbeat_type onbeat_wcet_violation;

/* Defines a kind of the program's own, below `super_type`. At file scope. */
#define ONBEAT_DEFINE_EXCEPTION(type, super_type) \
	const struct onbeat_type type = { #type, &(super_type) }

/* An exception that was thrown, as its handler sees it. */
struct onbeat_thrown {
	const struct onbeat_type *type;
	void *value;      /* what onbeat_throw_value() was given, else NULL */
	int64_t delay_ns; /* of a violation: from the expiry to its notification */
};

enum onbeat_stage {
	ONBEAT_STAGE_ENTERED,
	ONBEAT_STAGE_BODY,
	ONBEAT_STAGE_FINALLY,
	ONBEAT_STAGE_HANDLE,
	ONBEAT_STAGE_DONE,
};

enum onbeat_constraint {
	ONBEAT_UNCONSTRAINED,
	ONBEAT_WITHIN_ABS,
	ONBEAT_WITHIN_REL,
	ONBEAT_WITHIN_WCET,
	/* In the same order. */
	ONBEAT_CHECKED_ABS,
	ONBEAT_CHECKED_REL,
	ONBEAT_CHECKED_WCET,
};

/* Where a block stands in the source, and in a benchmark build what was measured there. */
struct onbeat_site {
	const char *file;
	int line;
	struct onbeat_samples *samples;
	void *unused;
};

/* One block that is being executed. Its fields are the library's own. */
struct onbeat_block {
	jmp_buf env;
	const struct onbeat_thrown *caught_around;
	struct onbeat_site *site;
	struct onbeat_block *target;
	struct onbeat_thrown thrown;
	int64_t expires_ns;
	int64_t earliest_deadline_ns;
	int64_t earliest_wcet_ns;
	int64_t began_ns;
	enum onbeat_constraint constraint;
	volatile enum onbeat_stage stage;
	int protections;
	volatile char in_flight;
	volatile char handled;
	unsigned char critical;
	volatile char completed;
};

/* Used by the macros below; not to be called by hand. */
void onbeat_block_enter_(struct onbeat_block *block, struct onbeat_site *site);
void onbeat_block_constrain_(struct onbeat_block *block, enum onbeat_constraint constraint,
			     int64_t ns);
int onbeat_block_next_(struct onbeat_block *block);
const struct onbeat_thrown *onbeat_block_caught_(const struct onbeat_block *block);
int onbeat_block_takes_(struct onbeat_block *block, const struct onbeat_type *type);
void onbeat_block_end_(struct onbeat_block *block);
void onbeat_block_left_(struct onbeat_block *block);
void onbeat_throw_at_(const struct onbeat_type *type, void *value, const char *file, int line)
	__attribute__((noreturn));
void onbeat_rethrow_at_(const struct onbeat_thrown *caught, const char *file, int line)
	__attribute__((noreturn));

#ifdef ONBEAT_BENCHMARK
void onbeat_block_measure_(struct onbeat_block *block);
#define ONBEAT_CONSTRAIN_(constraint, ns) ((void)(ns), onbeat_block_measure_(&onbeat_block_here_))
#else
#define ONBEAT_CONSTRAIN_(constraint, ns) \
	onbeat_block_constrain_(&onbeat_block_here_, constraint, ns)
#endif

/*
 * A block inside a block hides the names of the outer one; that is meant, whatever -Wshadow says.
 */
/* clang-format off */
#define ONBEAT_TRY_(constraint, ns)                                                              \
	do {                                                                                     \
		_Pragma("GCC diagnostic push")                                                   \
		_Pragma("GCC diagnostic ignored \"-Wshadow\"")                                   \
		/* Of whole numbers alone: a time in seconds, as 0.5, is none. */                \
		const int64_t onbeat_ns_here_ = (ns) | 0;                                        \
		static struct onbeat_site onbeat_site_here_ = { __FILE__, __LINE__, 0, 0 };      \
		struct onbeat_block onbeat_block_here_                                           \
			__attribute__((cleanup(onbeat_block_left_)));                            \
		_Pragma("GCC diagnostic pop")                                                    \
		onbeat_block_enter_(&onbeat_block_here_, &onbeat_site_here_);                    \
		if (setjmp(onbeat_block_here_.env) == 0)                                         \
			ONBEAT_CONSTRAIN_(constraint, onbeat_ns_here_);                          \
		while (onbeat_block_next_(&onbeat_block_here_)) {                                \
			if (onbeat_block_here_.stage == ONBEAT_STAGE_BODY)
/* clang-format on */

/* Begins a block without a constraint of its own: for exceptions that are thrown by hand. */
#define onbeat_try ONBEAT_TRY_(ONBEAT_UNCONSTRAINED, 0)
/* Begins a block that must end before CLOCK_MONOTONIC reads `ns`. */
#define onbeat_try_within_abs(ns) ONBEAT_TRY_(ONBEAT_WITHIN_ABS, ns)
/* Begins a block that must end within `ns` from now. */
#define onbeat_try_within_rel(ns) ONBEAT_TRY_(ONBEAT_WITHIN_REL, ns)
/* Begins a block that may execute for `ns` of this thread's CPU time. */
#define onbeat_try_within_wcet(ns) ONBEAT_TRY_(ONBEAT_WITHIN_WCET, ns)
/* The same, but such a block is left only where it, or a function that it calls, checks. */
#define onbeat_try_checked_abs(ns) ONBEAT_TRY_(ONBEAT_CHECKED_ABS, ns)
#define onbeat_try_checked_rel(ns) ONBEAT_TRY_(ONBEAT_CHECKED_REL, ns)
#define onbeat_try_checked_wcet(ns) ONBEAT_TRY_(ONBEAT_CHECKED_WCET, ns)

/*
 * Runs exactly once when its block has ended, by an exception too, before the handlers; never
 * interrupted.
 */
#define onbeat_finally else if (onbeat_block_here_.stage == ONBEAT_STAGE_FINALLY)

/* Begins the handlers. Required, also without any `when`. */
#define onbeat_handle                                             \
	else if (onbeat_block_here_.stage == ONBEAT_STAGE_HANDLE) \
	{                                                         \
		if (0) {                                          \
		}

/* Handles exceptions of a kind and its sub-kinds; the first that fits wins. */
#define onbeat_when(type) else if (onbeat_block_takes_(&onbeat_block_here_, &(type)))

/*
 * Inside a `when`, and in blocks inside it until they handle an exception of their own: the
 * exception, as const struct onbeat_thrown *. In other blocks one whose type is NULL.
 */
#define onbeat_caught() onbeat_block_caught_(&onbeat_block_here_)

/* Ends the block. An exception that no `when` took goes on to the block around it. */
#define onbeat_end                              \
	}                                       \
	onbeat_block_here_.completed = 1;       \
	}                                       \
	onbeat_block_end_(&onbeat_block_here_); \
	}                                       \
	while (0)

/* Throws an exception: the innermost block that handles its kind takes it; without one, abort. */
#define onbeat_throw(type) onbeat_throw_at_(&(type), 0, __FILE__, __LINE__)
/* The same, with a pointer for the handler. */
#define onbeat_throw_value(type, value) onbeat_throw_at_(&(type), value, __FILE__, __LINE__)
/* Inside a `when`: throws the same exception, with its delay, on to the block around this one. */
#define onbeat_rethrow() onbeat_rethrow_at_(onbeat_caught(), __FILE__, __LINE__)

/*
 * Makes what this thread's blocks need: memory and timers. 0, or -errno where a block would end the
 * program. May be left out: the first blocks make it, which takes longer.
 */
int onbeat_within_prepare(void);

/* Begins a protected section: violations wait for its end. Sections nest. */
void onbeat_within_disable(void);
/* Ends a protected section; a violation that came meanwhile is thrown here. */
void onbeat_within_enable(void);
void onbeat_within_enable_at_(const char *file, int line);
#define onbeat_within_enable() onbeat_within_enable_at_(__FILE__, __LINE__)

/*
 * Leaves the outermost block that has expired, if one has: the blocks around it are to be checked
 * ones, up to that one. In a protected section, in a `finally` and outside of blocks it does
 * nothing. Costs a few nanoseconds, so an inner loop may call it. A call that sleeps and that
 * signal(7) has never restarted (poll, nanosleep, sem_wait) returns EINTR when a block expires, and
 * can be followed by a check; read() goes on sleeping, so poll before.
 */
void onbeat_check(void);

/* The time to the earliest expiry of any deadline block this thread is in; negative once past. */
int64_t onbeat_remaining(void);
/* The execution time left to the tightest wcet block this thread is in. */
int64_t onbeat_remaining_wcet(void);
/* How late the violation that is being handled was notified (onbeat_caught()->delay_ns). */
#define onbeat_delay() (onbeat_caught()->delay_ns)

/* How execution-time violations are noticed in this thread. */
enum onbeat_wcet_source {
	ONBEAT_WCET_PERF_CLOCK, /* perf's task clock: tens of microseconds late */
	ONBEAT_WCET_CPU_TIMER,  /* the CPU-time timer: noticed on the scheduler's tick */
	ONBEAT_WCET_USER_CLOCK, /* the first while the thread computes, the second in the kernel */
};
enum onbeat_wcet_source onbeat_wcet_source(void);

/* Blocks inside blocks, at most; set when the library is built. */
int onbeat_max_depth(void);

/* Writes what a benchmark build measured: a table, and JSON beside it. 0, or -errno. */
int onbeat_benchmark_write(const char *table_path, const char *json_path);

#ifdef __cplusplus
}
#endif

#ifdef ONBEAT_SHORT_NAMES
#define try_within_abs onbeat_try_within_abs
#define try_within_rel onbeat_try_within_rel
#define try_within_wcet onbeat_try_within_wcet
#define try_checked_abs onbeat_try_checked_abs
#define try_checked_rel onbeat_try_checked_rel
#define try_checked_wcet onbeat_try_checked_wcet
#define handle onbeat_handle
#define when onbeat_when
#define finally onbeat_finally
#define end onbeat_end
#define within_disable onbeat_within_disable
#define within_enable onbeat_within_enable
#define timing_constraint_violation onbeat_timing_constraint_violation
#define deadline_violation onbeat_deadline_violation
#define wcet_violation onbeat_wcet_violation
#ifndef __cplusplus
#define try onbeat_try
#define throw(type) onbeat_throw(type)
#endif
#endif

#endif
