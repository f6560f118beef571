/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The life of a block: entered, its body, its `finally`, its handlers, ended.
 *
 * A block is a frame in its thread's stack of blocks. Every way out of a body (its end, a throw, a
 * violation) leads to one place, onbeat_block_next_, which takes the block off the stack and
 * disarms it before anything else runs. A violation names the block whose constraint expired as its
 * target: the blocks inside it run their `finally` and none of their handlers (requirement 6).
 *
 * If several blocks of a thread have expired, the outermost is the target: what the inner ones
 * could still save belongs to a computation that is being given up.
 *
 * Async-signal-safety: onbeat_handler_ calls clock_gettime, timer_settime, ioctl, sigaltstack and
 * longjmp, allocates nothing and takes no lock. It goes further than a note only while the thread
 * executes the program's own interruptible code (see within.h in this folder), or code that the
 * program let be interrupted.
 */
#include "within.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct onbeat_type onbeat_exception = { "onbeat_exception", NULL };
const struct onbeat_type onbeat_timing_constraint_violation = {
	"onbeat_timing_constraint_violation", &onbeat_exception
};
const struct onbeat_type onbeat_deadline_violation = { "onbeat_deadline_violation",
						       &onbeat_timing_constraint_violation };
const struct onbeat_type onbeat_wcet_violation = { "onbeat_wcet_violation",
						   &onbeat_timing_constraint_violation };

/* The exception outside every handler. */
const struct onbeat_thrown onbeat_nothing_;

/* Goes on, unless debugging is wanted. */
void onbeat_misuse_(const char *file, int line, const char *what)
{
#ifndef ONBEAT_DEBUG
	if (!getenv("ONBEAT_DEBUG"))
		return;
#endif
	fprintf(stderr, "%s:%d: onbeat: %s\n", file, line, what);
	abort();
}

static void rearm(struct onbeat_thread *thread)
{
	const struct onbeat_block *top = onbeat_top_(thread);
	int64_t deadline_ns = top ? top->earliest_deadline_ns : INT64_MAX;
	int64_t wcet_ns = top ? top->earliest_wcet_ns : INT64_MAX;

	if (thread->deadline.armed_ns != deadline_ns || thread->deadline.uncertain)
		onbeat_deadline_arm_(thread, deadline_ns);
	if (thread->wcet.armed_ns != wcet_ns || thread->wcet.uncertain)
		onbeat_wcet_arm_(thread, wcet_ns);
}

/* Negative while the block's constraint has not expired. */
static int64_t overdue(const struct onbeat_block *block, int64_t now_ns, int64_t cpu_ns)
{
	switch (block->constraint) {
	case ONBEAT_WITHIN_ABS:
	case ONBEAT_WITHIN_REL:
		return now_ns - block->expires_ns;
	case ONBEAT_WITHIN_WCET:
		return cpu_ns - block->expires_ns;
	default:
		return -1;
	}
}

static void record_violation(struct onbeat_block *at, struct onbeat_block *target, int64_t delay_ns)
{
	at->thrown.type = target->constraint == ONBEAT_WITHIN_WCET ? &onbeat_wcet_violation
								   : &onbeat_deadline_violation;
	at->thrown.value = NULL;
	at->thrown.delay_ns = delay_ns;
	at->target = target;
	at->in_flight = 1;
}

/* What the block's body has not let go of is abandoned. */
static void enter_critical_after(struct onbeat_thread *thread, const struct onbeat_block *block)
{
	thread->critical = block->critical + 1;
	onbeat_barrier();
}

/* Leaves the innermost body, whose `thrown` and `target` are set. Critical over the jump. */
__attribute__((noreturn)) static void leave_body(struct onbeat_thread *thread)
{
	enter_critical_after(thread, onbeat_top_(thread));
	longjmp(onbeat_top_(thread)->env, 1);
}

/* The outermost block that has expired, and by how much; NULL if none has. */
static struct onbeat_block *expired(const struct onbeat_thread *thread, int64_t *delay_ns)
{
	const struct onbeat_block *top = onbeat_top_(thread);
	int64_t now_ns = onbeat_now_();
	int64_t cpu_ns = 0;

	if (top && top->earliest_wcet_ns != INT64_MAX)
		cpu_ns = onbeat_cpu_now_();
	for (int i = 0; i < thread->depth; i++) {
		*delay_ns = overdue(thread->frames[i].block, now_ns, cpu_ns);
		if (*delay_ns >= 0)
			return thread->frames[i].block;
	}
	return NULL;
}

/* Cancellation waits for the end of the outermost block that can be left by a violation. */
static void keep_from_cancelling(struct onbeat_thread *thread, struct onbeat_block *block)
{
	if (thread->uncancelled)
		return;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &thread->cancel_state);
	pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &thread->cancel_type);
	thread->uncancelled = block;
	thread->uncancelled_depth = thread->depth;
}

/* `block` has been left; NULL: blocks were forgotten. */
static void allow_cancelling(struct onbeat_thread *thread, const struct onbeat_block *block)
{
	if (!thread->uncancelled || (thread->uncancelled != block &&
				     thread->uncancelled_depth <= thread->depth + (block ? 1 : 0)))
		return;
	thread->uncancelled = NULL;
	/* The type as well: a call of libc that was abandoned half-way may have changed it. */
	pthread_setcanceltype(thread->cancel_type, NULL);
	pthread_setcancelstate(thread->cancel_state, NULL);
}

/* Forgets the blocks from `depth` on, which were not left through their ends. */
static void forget_blocks(struct onbeat_thread *thread, int depth)
{
	const struct onbeat_frame *frame = &thread->frames[depth];

	onbeat_protections_ = frame->protections;
	thread->depth = depth;
	rearm(thread);
	allow_cancelling(thread, NULL);
	onbeat_misuse_(
		frame->site->file, frame->site->line,
		"this block was left by longjmp, or by the end of its thread: let it reach its "
		"end, or throw");
}

/* Forgets the blocks whose functions have been left, seen from a stack pointer. */
static void forget_left(struct onbeat_thread *thread, uintptr_t stack)
{
	int depth = thread->depth;

	while (depth && onbeat_notify_left_(thread->frames[depth - 1].stack, stack))
		depth--;
	if (depth < thread->depth)
		forget_blocks(thread, depth);
}

/*
 * Throws the violation that is due, if one is. The jump may abandon the other source's handler
 * before it could note its signal, so that neither source is known to be set any more. Else the
 * signal came early, and its source is set again: perf's clock and the CPU-time clock differ where
 * a hypervisor steals time, and a signal can be one that was on its way when its block was left.
 * Critical throughout, lest the other source's signal jump out of here between the note that a
 * source is set and the call that sets it.
 */
static void throw_violation(struct onbeat_thread *thread, uintptr_t stack)
{
	do {
		struct onbeat_block *target, *top;
		int64_t delay_ns = 0;

		onbeat_enter_critical_(thread);
		thread->pending = 0;
		forget_left(thread, stack);
		top = onbeat_top_(thread);
		target = expired(thread, &delay_ns);
		if (target) {
			thread->deadline.uncertain = true;
			thread->wcet.uncertain = true;
			record_violation(top, target, delay_ns);
			leave_body(thread);
		}
		if (top) {
			onbeat_deadline_arm_(thread, top->earliest_deadline_ns);
			onbeat_wcet_arm_(thread, top->earliest_wcet_ns);
		}
		onbeat_barrier();
		thread->critical--;
		onbeat_barrier();
	} while (thread->pending);
}

/*
 * Throws what was noted while the thread could not be interrupted, if it can be now. `stack` is the
 * stack pointer of the code that is interrupted; 0: it is inside its innermost block for certain.
 */
static void throw_pending(struct onbeat_thread *thread, uintptr_t stack)
{
	onbeat_barrier();
	if (thread->pending && !thread->critical && !onbeat_protections_)
		throw_violation(thread, stack);
}

void onbeat_leave_critical_(struct onbeat_thread *thread)
{
	onbeat_barrier();
	thread->critical--;
	throw_pending(thread, 0);
}

void onbeat_handler_(int number, siginfo_t *info, void *context)
{
	struct onbeat_thread *thread = onbeat_thread_if_any_();
	const ucontext_t *interrupted = context;
	int saved = errno;

	(void)number;
	(void)info;
	if (thread) {
		thread->pending = 1;
		if (!thread->critical && !onbeat_protections_) {
			/* As it was, for a jump does not put it back. */
			pthread_sigmask(SIG_SETMASK, &interrupted->uc_sigmask, NULL);
			throw_pending(thread, onbeat_notify_stack_(context));
		}
	}
	errno = saved;
}

/* Never inlined: its own frame begins where its caller's ends, which is what is noted. */
__attribute__((noinline)) void onbeat_block_enter_(struct onbeat_block *block,
						   struct onbeat_site *site)
{
	struct onbeat_thread *thread = onbeat_thread_();
	const uintptr_t stack = (uintptr_t)__builtin_frame_address(0);
	const struct onbeat_block *outer;

	onbeat_enter_critical_(thread);
	forget_left(thread, stack);
	/* A block that is entered again has been left. */
	if (onbeat_top_(thread) == block)
		forget_blocks(thread, thread->depth - 1);
	if (thread->depth == ONBEAT_MAX_DEPTH) {
		fprintf(stderr,
			"%s:%d: onbeat: blocks nested deeper than %d; build the library with a "
			"greater ONBEAT_MAX_DEPTH\n",
			site->file, site->line, ONBEAT_MAX_DEPTH);
		abort();
	}
	outer = onbeat_top_(thread);
	block->caught_around = thread->caught;
	block->site = site;
	block->target = NULL;
	block->in_flight = 0;
	block->handled = 0;
	block->completed = 0;
	block->constraint = ONBEAT_UNCONSTRAINED;
	block->began_ns = 0;
	block->earliest_deadline_ns = outer ? outer->earliest_deadline_ns : INT64_MAX;
	block->earliest_wcet_ns = outer ? outer->earliest_wcet_ns : INT64_MAX;
	block->protections = onbeat_protections_;
	block->critical = (unsigned char)(thread->critical - 1);
	block->stage = ONBEAT_STAGE_ENTERED;
	thread->frames[thread->depth++] = (struct onbeat_frame){
		.block = block,
		.site = site,
		.stack = stack,
		.protections = onbeat_protections_,
	};
}

void onbeat_block_constrain_(struct onbeat_block *block, enum onbeat_constraint constraint,
			     int64_t ns)
{
	struct onbeat_thread *thread = onbeat_thread_();
	int64_t start_ns = 0;

	if (constraint == ONBEAT_UNCONSTRAINED)
		return;
	if (constraint >= ONBEAT_CHECKED_ABS) {
		constraint -= ONBEAT_CHECKED_ABS - ONBEAT_WITHIN_ABS;
		thread->frames[thread->depth - 1].checked = true;
		onbeat_protections_++;
	}
	if (constraint == ONBEAT_WITHIN_REL)
		start_ns = onbeat_now_();
	else if (constraint == ONBEAT_WITHIN_WCET)
		start_ns = onbeat_cpu_now_();
	if (__builtin_add_overflow(start_ns, ns, &block->expires_ns))
		block->expires_ns = ns < 0 ? 0 : INT64_MAX;
	/* No clock reads less, and by how much it has passed can be told. */
	if (block->expires_ns < 0)
		block->expires_ns = 0;
	block->constraint = constraint;
	if (constraint == ONBEAT_WITHIN_WCET)
		block->earliest_wcet_ns = onbeat_min_(block->earliest_wcet_ns, block->expires_ns);
	else
		block->earliest_deadline_ns =
			onbeat_min_(block->earliest_deadline_ns, block->expires_ns);
	keep_from_cancelling(thread, block);
	rearm(thread);
}

/* Takes the block, and any that a misuse left inside it, off the stack. */
static void pop(struct onbeat_thread *thread, const struct onbeat_block *block)
{
	int depth = thread->depth;

	while (depth && thread->frames[depth - 1].block != block)
		depth--;
	if (depth && depth < thread->depth)
		forget_blocks(thread, depth);
	if (depth)
		thread->depth = depth - 1;
	onbeat_protections_ = block->protections;
	thread->caught = block->caught_around;
	rearm(thread);
}

static void leave_block(struct onbeat_thread *thread, struct onbeat_block *block)
{
	int64_t late_ns = -1;

	enter_critical_after(thread, block);
	/* The clock has the last word: a notification may be late, or blocked by the program. */
	if (!block->in_flight && block->constraint == ONBEAT_WITHIN_WCET)
		late_ns = overdue(block, 0, onbeat_cpu_now_());
	else if (!block->in_flight && block->constraint != ONBEAT_UNCONSTRAINED)
		late_ns = overdue(block, onbeat_now_(), 0);
	if (late_ns >= 0)
		record_violation(block, block, late_ns);
	if (block->began_ns)
		onbeat_measured_(block->site, onbeat_now_() - block->began_ns);
	pop(thread, block);
	block->stage = ONBEAT_STAGE_FINALLY;
	onbeat_protections_++;
	onbeat_leave_critical_(thread);
}

int onbeat_block_next_(struct onbeat_block *block)
{
	struct onbeat_thread *thread = onbeat_thread_();
	const bool left_early = block->stage == ONBEAT_STAGE_BODY && block->in_flight;

	/* A `continue` comes here, past what the end of each stage notes. */
	if (!block->completed && !left_early && block->stage != ONBEAT_STAGE_ENTERED)
		onbeat_misuse_(block->site->file, block->site->line,
			       "this block was left by continue: let it reach its end, or throw");
	block->completed = 0;
	switch (block->stage) {
	case ONBEAT_STAGE_ENTERED:
		block->stage = ONBEAT_STAGE_BODY;
		onbeat_leave_critical_(thread);
		return 1;
	case ONBEAT_STAGE_BODY:
		leave_block(thread, block);
		return 1;
	case ONBEAT_STAGE_FINALLY:
		block->stage = block->in_flight && (!block->target || block->target == block)
				       ? ONBEAT_STAGE_HANDLE
				       : ONBEAT_STAGE_DONE;
		onbeat_enter_critical_(thread);
		onbeat_protections_ = block->protections;
		onbeat_leave_critical_(thread);
		allow_cancelling(thread, block);
		return block->stage == ONBEAT_STAGE_HANDLE;
	case ONBEAT_STAGE_HANDLE:
	case ONBEAT_STAGE_DONE:
		break;
	}
	block->stage = ONBEAT_STAGE_DONE;
	return 0;
}

int onbeat_block_takes_(struct onbeat_block *block, const struct onbeat_type *type)
{
	const struct onbeat_type *thrown = block->thrown.type;

	while (thrown && thrown != type)
		thrown = thrown->super;
	block->handled = thrown != NULL;
	if (block->handled)
		onbeat_thread_()->caught = &block->thrown;
	return block->handled;
}

const struct onbeat_thrown *onbeat_block_caught_(const struct onbeat_block *block)
{
	return block->stage == ONBEAT_STAGE_HANDLE ? &block->thrown : block->caught_around;
}

__attribute__((noreturn)) static void throw_on(struct onbeat_thread *thread,
					       const struct onbeat_thrown *thrown,
					       struct onbeat_block *target, const char *file,
					       int line, uintptr_t stack)
{
	struct onbeat_block *top;

	onbeat_enter_critical_(thread);
	forget_left(thread, stack);
	top = onbeat_top_(thread);
	if (!top) {
		fprintf(stderr, "%s:%d: onbeat: %s was thrown and no block handles it\n", file,
			line, thrown->type->name);
		abort();
	}
	top->thrown = *thrown;
	top->target = target;
	top->in_flight = 1;
	leave_body(thread);
}

void onbeat_block_end_(struct onbeat_block *block)
{
	if (block->stage != ONBEAT_STAGE_DONE && block->stage != ONBEAT_STAGE_HANDLE) {
		onbeat_block_left_(block);
		return;
	}
	onbeat_thread_()->caught = block->caught_around;
	block->stage = ONBEAT_STAGE_DONE;
	if (block->in_flight && !block->handled) {
		struct onbeat_block *target = block->target == block ? NULL : block->target;

		throw_on(onbeat_thread_(), &block->thrown, target, block->site->file,
			 block->site->line, 0);
	}
}

void onbeat_block_left_(struct onbeat_block *block)
{
	struct onbeat_thread *thread;

	if (block->stage == ONBEAT_STAGE_DONE)
		return;
	onbeat_misuse_(
		block->site->file, block->site->line,
		"this block was left by return, goto or break: let it reach its end, or throw");
	thread = onbeat_thread_();
	enter_critical_after(thread, block);
	if (block->stage == ONBEAT_STAGE_BODY)
		pop(thread, block);
	thread->caught = block->caught_around;
	onbeat_protections_ = block->protections;
	block->stage = ONBEAT_STAGE_DONE;
	onbeat_leave_critical_(thread);
	allow_cancelling(thread, block);
}

__attribute__((noinline)) void onbeat_throw_at_(const struct onbeat_type *type, void *value,
						const char *file, int line)
{
	struct onbeat_thrown thrown = { type, value, 0 };

	throw_on(onbeat_thread_(), &thrown, NULL, file, line,
		 (uintptr_t)__builtin_frame_address(0));
}

__attribute__((noinline)) void onbeat_rethrow_at_(const struct onbeat_thrown *caught,
						  const char *file, int line)
{
	/* The block that it stands in may be left. */
	const struct onbeat_thrown thrown = *caught;

	if (!thrown.type) {
		fprintf(stderr, "%s:%d: onbeat: onbeat_rethrow outside a handler\n", file, line);
		abort();
	}
	throw_on(onbeat_thread_(), &thrown, NULL, file, line,
		 (uintptr_t)__builtin_frame_address(0));
}

/* How many protected sections are bodies of checked blocks. */
static sig_atomic_t checked_blocks(const struct onbeat_thread *thread)
{
	sig_atomic_t checked = 0;

	for (int i = 0; thread && i < thread->depth; i++)
		checked += thread->frames[i].checked;
	return checked;
}

/* One check of so many reads the clock: the program may have blocked the signal. */
#define CHECKS 64

__attribute__((noinline)) void onbeat_check(void)
{
	struct onbeat_thread *thread = onbeat_thread_if_any_();
	const sig_atomic_t protections = onbeat_protections_;
	int64_t delay_ns;

	if (!thread || (!thread->pending && ++thread->checks % CHECKS) ||
	    protections != checked_blocks(thread))
		return;
	if (!thread->pending && expired(thread, &delay_ns))
		thread->pending = 1;
	onbeat_protections_ = 0;
	throw_pending(thread, (uintptr_t)__builtin_frame_address(0));
	onbeat_protections_ = protections;
}

void onbeat_within_disable(void)
{
	onbeat_protections_++;
	onbeat_barrier();
}

__attribute__((noinline)) void onbeat_within_enable_at_(const char *file, int line)
{
	struct onbeat_thread *thread = onbeat_thread_if_any_();

	if (onbeat_protections_ == checked_blocks(thread)) {
		onbeat_misuse_(file, line, "onbeat_within_enable without onbeat_within_disable");
		return;
	}
	onbeat_barrier();
	onbeat_protections_--;
	if (thread)
		throw_pending(thread, (uintptr_t)__builtin_frame_address(0));
}

/* For callers that have no preprocessor. */
void(onbeat_within_enable)(void)
{
	onbeat_within_enable_at_("the program", 0);
}

int64_t onbeat_remaining(void)
{
	const struct onbeat_thread *thread = onbeat_thread_if_any_();
	const struct onbeat_block *top = thread ? onbeat_top_(thread) : NULL;
	const int64_t expires_ns = top ? top->earliest_deadline_ns : INT64_MAX;

	return expires_ns == INT64_MAX ? ONBEAT_FOREVER : expires_ns - onbeat_now_();
}

int64_t onbeat_remaining_wcet(void)
{
	const struct onbeat_thread *thread = onbeat_thread_if_any_();
	const struct onbeat_block *top = thread ? onbeat_top_(thread) : NULL;
	const int64_t expires_ns = top ? top->earliest_wcet_ns : INT64_MAX;

	return expires_ns == INT64_MAX ? ONBEAT_FOREVER : expires_ns - onbeat_cpu_now_();
}

int onbeat_max_depth(void)
{
	return ONBEAT_MAX_DEPTH;
}
