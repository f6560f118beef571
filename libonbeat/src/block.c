/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The life of a block: entered, its body, its `finally`, its handlers, ended.
 *
 * A block is a frame in its thread's stack of blocks. Whatever leaves a body (its end, a throw, a
 * violation) comes out at one place, onbeat_block_next_, which takes the block off the stack and
 * disarms it before anything else runs. A violation names the block whose constraint expired as its
 * target: the blocks inside it run their `finally` and none of their handlers (requirement 6).
 *
 * If several blocks of a thread have expired, the outermost is the target: what the inner ones could
 * still save belongs to a computation that is being given up.
 *
 * Async-signal-safety: onbeat_signalled_ runs in the handler. It calls clock_gettime, timer_settime,
 * ioctl and siglongjmp, allocates nothing, takes no lock, and runs only while the thread executes the
 * program's own interruptible code (see within.h in this folder), or code that the program let be
 * interrupted.
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

/* Says what was done wrong and where; in a debug build that is the end. */
void onbeat_misuse_(const char *file, int line, const char *what)
{
#ifdef ONBEAT_DEBUG
	fprintf(stderr, "%s:%d: onbeat: %s\n", file, line, what);
	abort();
#else
	(void)file;
	(void)line;
	(void)what;
#endif
}

static void rearm(struct onbeat_thread *thread)
{
	const struct onbeat_block *top = thread->top;
	int64_t deadline_ns = top ? top->earliest_deadline_ns : INT64_MAX;
	int64_t wcet_ns = top ? top->earliest_wcet_ns : INT64_MAX;

	if (thread->deadline.armed_ns != deadline_ns || thread->deadline.uncertain)
		onbeat_deadline_arm_(thread, deadline_ns);
	if (thread->wcet.armed_ns != wcet_ns || thread->wcet.uncertain)
		onbeat_wcet_arm_(thread, wcet_ns);
}

/* By how much the block's constraint has expired; negative while it has not. */
static int64_t overdue(const struct onbeat_block *block, int64_t now_ns, int64_t cpu_ns)
{
	switch (block->constraint) {
	case ONBEAT_WITHIN_ABS:
	case ONBEAT_WITHIN_REL:
		return now_ns - block->expires_ns;
	case ONBEAT_WITHIN_WCET:
		return cpu_ns - block->expires_ns;
	case ONBEAT_UNCONSTRAINED:
		break;
	}
	return -1;
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

/* Makes critical what comes after the block's body; what the body has not let go of is abandoned. */
static void enter_critical_after(struct onbeat_thread *thread, const struct onbeat_block *block)
{
	thread->critical = block->critical + 1;
	onbeat_barrier();
}

/* Leaves the innermost body, whose `thrown` and `target` are set. `critical` is held over the jump. */
__attribute__((noreturn)) static void leave_body(struct onbeat_thread *thread)
{
	enter_critical_after(thread, thread->top);
	siglongjmp(thread->top->env, 1);
}

/* The outermost block that has expired, and by how much; NULL if none has. */
static struct onbeat_block *expired(const struct onbeat_thread *thread, int64_t *delay_ns)
{
	struct onbeat_block *target = NULL;
	int64_t now_ns = onbeat_now_();
	int64_t cpu_ns = 0;

	if (thread->top && thread->top->earliest_wcet_ns != INT64_MAX)
		cpu_ns = onbeat_cpu_now_();
	for (struct onbeat_block *block = thread->top; block; block = block->outer) {
		int64_t late_ns = overdue(block, now_ns, cpu_ns);

		if (late_ns >= 0) {
			target = block;
			*delay_ns = late_ns;
		}
	}
	return target;
}

/*
 * Throws the violation that is due, if one is. The jump may abandon the other source's handler before
 * it could note its signal, so that neither source is known to be set any more. Else the signal came
 * early, and its source is set again: perf's clock and the CPU-time clock differ where a hypervisor
 * steals time, and a signal can be one that was on its way when its block was left. Critical
 * throughout, lest the other source's signal jump out of here between the note that a source is set
 * and the call that sets it.
 */
static void throw_violation(struct onbeat_thread *thread)
{
	do {
		struct onbeat_block *target;
		int64_t delay_ns = 0;

		onbeat_enter_critical_(thread);
		thread->pending = 0;
		target = expired(thread, &delay_ns);
		if (target) {
			thread->deadline.uncertain = thread->deadline.ready;
			thread->wcet.uncertain = thread->wcet.ready;
			record_violation(thread->top, target, delay_ns);
			leave_body(thread);
		}
		if (thread->top) {
			onbeat_deadline_arm_(thread, thread->top->earliest_deadline_ns);
			onbeat_wcet_arm_(thread, thread->top->earliest_wcet_ns);
		}
		onbeat_barrier();
		thread->critical--;
		onbeat_barrier();
	} while (thread->pending);
}

/* Throws what was noted while the thread could not be interrupted, if it can be now. */
static void throw_pending(struct onbeat_thread *thread)
{
	onbeat_barrier();
	if (thread->pending && !thread->critical && !thread->protections)
		throw_violation(thread);
}

void onbeat_signalled_(struct onbeat_thread *thread)
{
	thread->pending = 1;
	throw_pending(thread);
}

void onbeat_leave_critical_(struct onbeat_thread *thread)
{
	onbeat_barrier();
	thread->critical--;
	throw_pending(thread);
}

/* What ONBEAT_SIGNAL calls in the thread that is meant. */
void onbeat_handler_(int number, siginfo_t *info, void *context)
{
	struct onbeat_thread *thread = onbeat_thread_if_any_();
	int saved = errno;

	(void)number;
	(void)info;
	(void)context;
	if (thread)
		onbeat_signalled_(thread);
	errno = saved;
}

void onbeat_block_enter_(struct onbeat_block *block, struct onbeat_site *site)
{
	struct onbeat_thread *thread = onbeat_thread_();

	onbeat_enter_critical_(thread);
	block->outer = thread->top;
	block->critical = (unsigned char)(thread->critical - 1);
	block->site = site;
	block->target = NULL;
	block->in_flight = 0;
	block->handled = 0;
	block->constraint = ONBEAT_UNCONSTRAINED;
	block->began_ns = 0;
	block->earliest_deadline_ns = block->outer ? block->outer->earliest_deadline_ns : INT64_MAX;
	block->earliest_wcet_ns = block->outer ? block->outer->earliest_wcet_ns : INT64_MAX;
	block->protections = thread->protections;
	block->stage = ONBEAT_STAGE_ENTERED;
	if (++thread->depth > ONBEAT_MAX_DEPTH) {
		fprintf(stderr,
			"%s:%d: onbeat: blocks nested deeper than %d; build the library with a "
			"greater "
			"ONBEAT_MAX_DEPTH\n",
			site->file, site->line, ONBEAT_MAX_DEPTH);
		abort();
	}
	thread->top = block;
}

void onbeat_block_constrain_(struct onbeat_block *block, enum onbeat_constraint constraint,
			     int64_t ns)
{
	struct onbeat_thread *thread = onbeat_thread_();
	int64_t start_ns = 0;

	if (constraint == ONBEAT_UNCONSTRAINED)
		return;
	if (constraint == ONBEAT_WITHIN_REL)
		start_ns = onbeat_now_();
	else if (constraint == ONBEAT_WITHIN_WCET)
		start_ns = onbeat_cpu_now_();
	if (__builtin_add_overflow(start_ns, ns, &block->expires_ns))
		block->expires_ns = ns < 0 ? INT64_MIN : INT64_MAX;
	block->constraint = constraint;
	if (constraint == ONBEAT_WITHIN_WCET)
		block->earliest_wcet_ns = onbeat_min_(block->earliest_wcet_ns, block->expires_ns);
	else
		block->earliest_deadline_ns =
			onbeat_min_(block->earliest_deadline_ns, block->expires_ns);
	rearm(thread);
}

/* Takes the block, and any that a misuse left inside it, off the stack; puts back what they changed. */
static void pop(struct onbeat_thread *thread, const struct onbeat_block *block)
{
	while (thread->top != block->outer) {
		thread->top = thread->top->outer;
		thread->depth--;
	}
	thread->protections = block->protections;
	rearm(thread);
}

static void leave_block(struct onbeat_thread *thread, struct onbeat_block *block)
{
	enter_critical_after(thread, block);
	/* A violation that waited for a protected section is due now, before the block is forgotten. */
	if (!block->in_flight && thread->pending) {
		int64_t late_ns =
			overdue(block, onbeat_now_(),
				block->constraint == ONBEAT_WITHIN_WCET ? onbeat_cpu_now_() : 0);

		if (late_ns >= 0)
			record_violation(block, block, late_ns);
	}
	if (block->began_ns)
		onbeat_measured_(block->site, onbeat_now_() - block->began_ns);
	pop(thread, block);
	block->stage = ONBEAT_STAGE_FINALLY;
	thread->protections++;
	onbeat_leave_critical_(thread);
}

int onbeat_block_next_(struct onbeat_block *block)
{
	struct onbeat_thread *thread = onbeat_thread_();

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
		thread->protections = block->protections;
		onbeat_leave_critical_(thread);
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
	return block->handled;
}

__attribute__((noreturn)) static void throw_on(struct onbeat_thread *thread,
					       const struct onbeat_thrown *thrown,
					       struct onbeat_block *target, const char *file,
					       int line)
{
	struct onbeat_block *top;

	onbeat_enter_critical_(thread);
	top = thread->top;
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
	block->stage = ONBEAT_STAGE_DONE;
	if (block->in_flight && !block->handled) {
		struct onbeat_block *target = block->target == block ? NULL : block->target;

		throw_on(onbeat_thread_(), &block->thrown, target, block->site->file,
			 block->site->line);
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
	thread->protections = block->protections;
	block->stage = ONBEAT_STAGE_DONE;
	onbeat_leave_critical_(thread);
}

void onbeat_throw_at_(const struct onbeat_type *type, void *value, const char *file, int line)
{
	struct onbeat_thrown thrown = { type, value, 0 };

	throw_on(onbeat_thread_(), &thrown, NULL, file, line);
}

void onbeat_within_disable(void)
{
	onbeat_thread_()->protections++;
	onbeat_barrier();
}

void onbeat_within_enable_at_(const char *file, int line)
{
	struct onbeat_thread *thread = onbeat_thread_();

	if (thread->protections == 0) {
		onbeat_misuse_(file, line, "onbeat_within_enable without onbeat_within_disable");
		return;
	}
	onbeat_barrier();
	thread->protections--;
	throw_pending(thread);
}

/* For callers that have no preprocessor. */
void(onbeat_within_enable)(void)
{
	onbeat_within_enable_at_("the program", 0);
}
