/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The Linux form of row E3: a timer's signal goes straight to the thread that set it (section 6.2).
 *
 * The handler runs with the signal unblocked (SA_NODEFER), because it may leave by a long jump, and
 * saving and restoring the signal mask at every block would be a system call more. That it never
 * runs inside itself to any harm is the doing of `critical`.
 */
#include "within.h"

#include <errno.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

int onbeat_notify_install_(void)
{
	onbeat_signal_ = onbeat_take_signal_(onbeat_handler_);
	return onbeat_signal_ < 0 ? onbeat_signal_ : 0;
}

int onbeat_notify_thread_(struct onbeat_thread *thread)
{
	(void)thread;
	return 0;
}

void onbeat_notify_ended_(struct onbeat_thread *thread)
{
	(void)thread;
}

void onbeat_notify_forked_(void)
{
}

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

int onbeat_notify_timer_(struct onbeat_thread *thread, clockid_t clock, timer_t *timer)
{
	struct sigevent event = { 0 };

	(void)thread;
	event.sigev_notify = SIGEV_THREAD_ID;
	event.sigev_signo = ONBEAT_SIGNAL;
	event.sigev_notify_thread_id = (pid_t)syscall(SYS_gettid);
	return timer_create(clock, &event, timer) ? -errno : 0;
}

uintptr_t onbeat_notify_stack_(const void *context)
{
	const ucontext_t *interrupted = context;

#if defined(__x86_64__)
	return (uintptr_t)interrupted->uc_mcontext.gregs[REG_RSP];
#elif defined(__i386__)
	return (uintptr_t)interrupted->uc_mcontext.gregs[REG_ESP];
#elif defined(__aarch64__)
	return (uintptr_t)interrupted->uc_mcontext.sp;
#elif defined(__arm__)
	return (uintptr_t)interrupted->uc_mcontext.arm_sp;
#elif defined(__riscv)
	return (uintptr_t)interrupted->uc_mcontext.__gregs[2];
#else
	(void)interrupted;
	return 0;
#endif
}

/*
 * A function that has a block takes at least its size of the stack; the call that entered it takes
 * less. A signal handler on a stack of its own may be anywhere.
 */
bool onbeat_notify_left_(uintptr_t frame, uintptr_t stack)
{
	stack_t other;

	if (stack < frame + sizeof(struct onbeat_block))
		return false;
	return sigaltstack(NULL, &other) || (other.ss_flags & SS_DISABLE) ||
	       stack - (uintptr_t)other.ss_sp > other.ss_size;
}
