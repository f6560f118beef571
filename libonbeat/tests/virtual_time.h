/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A world for one test program in which time stands still unless the program moves it, and a signal
 * can be made to arrive between any two instructions.
 *
 * The clocks and timers of libc, and perf's task clock, are replaced by definitions of the
 * program's own, which the linker prefers: a timer is a number, and it fires when the test moves
 * its clock past it. Perf's clock fires early by PERF_EARLY_NS, as the real one may under a
 * hypervisor that steals time.
 *
 * The processor's trap flag raises SIGTRAP after each instruction. Its handler notes all there is
 * to know of the program (registers, stack, the library's state of the thread, what the test
 * keeps), moves the clocks, and lets the program run to its end; there everything is put back as it
 * was noted, and the next instruction follows. So one pass over the program tries every place in
 * it.
 */
#ifndef ONBEAT_TESTS_VIRTUAL_TIME_H
#define ONBEAT_TESTS_VIRTUAL_TIME_H

#include <dlfcn.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <time.h>
#include <ucontext.h>

#include "../src/within.h"
#include "check.h"

#define PERF_EARLY_NS 50
#define NEVER INT64_MAX
#define TRAP_FLAG 0x100

enum { WALL, CPU, CLOCKS };
/* The sources that fire: a timer of each clock, and perf's clock, which goes by the CPU time. */
enum { PERF = CLOCKS, SOURCES };

static int64_t clock_ns[CLOCKS];
static int64_t armed_ns[SOURCES] = { NEVER, NEVER, NEVER };
/* 1: beside the timer, 2: alone. */
static int perf_is_there;

static bool is_due(int source)
{
	return armed_ns[source] <= clock_ns[source == PERF ? CPU : source];
}

/* The times to which the clocks are moved, at least. */
struct readings {
	int64_t ns[CLOCKS];
};

/*
 * The test's own: what it keeps of a run, and its note of where the program is when the clocks are
 * moved.
 */
static struct test_state test_state;
static void injected(void);

/*
 * Both signals are pending before either is delivered, as from a kernel that sees both timers
 * expire.
 */
static void fire_what_is_due(void)
{
	sigset_t notification, before;

	if (!is_due(WALL) && !is_due(CPU) && !is_due(PERF))
		return;
	sigemptyset(&notification);
	sigaddset(&notification, ONBEAT_SIGNAL);
	pthread_sigmask(SIG_BLOCK, &notification, &before);
	for (int i = 0; i < SOURCES; i++) {
		if (is_due(i)) {
			armed_ns[i] = NEVER;
			raise(ONBEAT_SIGNAL);
		}
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void move_clocks(const struct readings *to)
{
	for (int i = 0; i < CLOCKS; i++) {
		if (to->ns[i] > clock_ns[i])
			clock_ns[i] = to->ns[i];
	}
	fire_what_is_due();
}

static enum { IDLE, STEPPING, TRYING } mode;
static const struct readings *move_to;
/* Every how many instructions there is a signal. */
static long steps, steps_between = 1;
static char *stack_base;

/* The program at one of its instructions. */
static struct {
	greg_t registers[NGREG];
	char floating[16384];
	char stack[65536];
	size_t stack_length;
	struct onbeat_thread thread;
	sig_atomic_t protections;
	int64_t clock_ns[CLOCKS], armed_ns[SOURCES];
	struct test_state test;
} noted;

/* The length of the saved floating-point state; the kernel writes it where hardware leaves room. */
static size_t floating_length(const ucontext_t *context)
{
	uint32_t length;

	memcpy(&length, (const char *)context->uc_mcontext.fpregs + 468, sizeof(length));
	return length;
}

static void note(const ucontext_t *context)
{
	/* Below the stack pointer lie 128 bytes that a function may use without moving it. */
	char *bottom = (char *)context->uc_mcontext.gregs[REG_RSP] - 128;

	noted.stack_length = (size_t)(stack_base - bottom);
	check(noted.stack_length <= sizeof(noted.stack));
	check(floating_length(context) <= sizeof(noted.floating));
	memcpy(noted.registers, context->uc_mcontext.gregs, sizeof(noted.registers));
	memcpy(noted.floating, context->uc_mcontext.fpregs, floating_length(context));
	memcpy(noted.stack, bottom, noted.stack_length);
	noted.thread = *onbeat_thread_();
	noted.protections = onbeat_protections_;
	memcpy(noted.clock_ns, clock_ns, sizeof(clock_ns));
	memcpy(noted.armed_ns, armed_ns, sizeof(armed_ns));
	noted.test = test_state;
}

static void put_back(ucontext_t *context)
{
	memcpy(context->uc_mcontext.gregs, noted.registers, sizeof(noted.registers));
	memcpy(context->uc_mcontext.fpregs, noted.floating, floating_length(context));
	memcpy(stack_base - noted.stack_length, noted.stack, noted.stack_length);
	*onbeat_thread_() = noted.thread;
	onbeat_protections_ = noted.protections;
	memcpy(clock_ns, noted.clock_ns, sizeof(clock_ns));
	memcpy(armed_ns, noted.armed_ns, sizeof(armed_ns));
	test_state = noted.test;
}

static void trapped(int number, siginfo_t *info, void *context)
{
	ucontext_t *where = context;

	(void)number;
	(void)info;
	if (mode == TRYING) {
		put_back(where);
		mode = STEPPING;
		return;
	}
	/* A signal that is pending, in fire_what_is_due(), could not be put back. */
	if (mode == STEPPING &&
	    (sigismember(&where->uc_sigmask, ONBEAT_SIGNAL) || ++steps % steps_between))
		return;
	if (mode == STEPPING)
		note(where);
	where->uc_mcontext.gregs[REG_EFL] &= ~(greg_t)TRAP_FLAG;
	if (mode == STEPPING) {
		mode = TRYING;
		injected();
		move_clocks(move_to);
	}
}

/* From the caller's next instruction on, each is tried, until program_ended(). */
static void step(const struct readings *to)
{
	move_to = to;
	mode = STEPPING;
	__asm__ volatile("sub $128, %%rsp\n\tpushfq\n\torq %0, (%%rsp)\n\tpopfq\n\tadd $128, %%rsp"
			 :
			 : "i"(TRAP_FLAG)
			 : "memory", "cc");
}

/* The program's last call: back to where the clocks were moved, if they were. */
static void program_ended(void)
{
	if (mode == TRYING)
		raise(SIGTRAP);
	mode = IDLE;
}

/* SIGTRAP has a stack of its own, so that the program's can be noted and put back. */
static void catch_traps(void)
{
	static char own_stack[131072];
	stack_t stack = { .ss_sp = own_stack, .ss_size = sizeof(own_stack) };
	struct sigaction action = { 0 };

	action.sa_sigaction = trapped;
	action.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK;
	check(sigaltstack(&stack, NULL) == 0 && sigaction(SIGTRAP, &action, NULL) == 0);
}

/* Stepped from the library's handler on, the next time that it is called. */
static const struct readings *in_next_handler;
static void (*library_handler)(int, siginfo_t *, void *);

static void handler_that_can_be_stepped(int number, siginfo_t *info, void *context)
{
	const struct readings *to = in_next_handler;

	in_next_handler = NULL;
	if (to)
		step(to);
	library_handler(number, info, context);
}

/* The library's own handler is wrapped; all others are set as they are. */
int sigaction(int number, const struct sigaction *action, struct sigaction *before)
{
	static int (*libc_sigaction)(int, const struct sigaction *, struct sigaction *);
	struct sigaction wrapped;

	if (!libc_sigaction)
		*(void **)&libc_sigaction = dlsym(RTLD_NEXT, "sigaction");
	if (!action || action->sa_sigaction != onbeat_handler_)
		return libc_sigaction(number, action, before);
	wrapped = *action;
	library_handler = action->sa_sigaction;
	wrapped.sa_sigaction = handler_that_can_be_stepped;
	return libc_sigaction(number, &wrapped, before);
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
	int64_t ns = clock_ns[clock == CLOCK_MONOTONIC ? WALL : CPU];

	now->tv_sec = ns / 1000000000;
	now->tv_nsec = ns % 1000000000;
	return 0;
}

static void arm(int source, int64_t expires_ns)
{
	armed_ns[source] = expires_ns;
	fire_what_is_due();
}

int timer_create(clockid_t clock, struct sigevent *event, timer_t *timer)
{
	(void)event;
	*(intptr_t *)timer = clock == CLOCK_MONOTONIC ? WALL : CPU;
	return 0;
}

int timer_settime(timer_t timer, int flags, const struct itimerspec *value, struct itimerspec *before)
{
	int64_t ns = (int64_t)value->it_value.tv_sec * 1000000000 + value->it_value.tv_nsec;

	(void)flags;
	(void)before;
	arm((int)(intptr_t)timer, ns ? ns : NEVER);
	return 0;
}

int timer_delete(timer_t timer)
{
	armed_ns[(intptr_t)timer] = NEVER;
	return 0;
}

bool onbeat_perf_clock_open_(struct onbeat_perf_clock *clock)
{
	clock->in_kernel = perf_is_there > 1;
	return perf_is_there;
}

bool onbeat_perf_clock_set_(const struct onbeat_perf_clock *clock, int64_t expires_ns)
{
	int64_t soonest_ns = clock_ns[CPU] + 1;
	int64_t early_ns = expires_ns - PERF_EARLY_NS;

	(void)clock;
	if (expires_ns == NEVER)
		arm(PERF, NEVER);
	else
		arm(PERF, early_ns > soonest_ns ? early_ns : soonest_ns);
	return true;
}

void onbeat_perf_clock_close_(const struct onbeat_perf_clock *clock)
{
	(void)clock;
	armed_ns[PERF] = NEVER;
}

#endif
