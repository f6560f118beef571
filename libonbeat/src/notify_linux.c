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
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

void onbeat_notify_install_(void)
{
	struct sigaction action = { 0 };

	action.sa_sigaction = onbeat_handler_;
	action.sa_flags = SA_SIGINFO | SA_NODEFER | SA_RESTART;
	sigemptyset(&action.sa_mask);
	sigaction(ONBEAT_SIGNAL, &action, NULL);
}

void onbeat_notify_thread_(struct onbeat_thread *thread)
{
	sigset_t ours;

	(void)thread;
	sigemptyset(&ours);
	sigaddset(&ours, ONBEAT_SIGNAL);
	pthread_sigmask(SIG_UNBLOCK, &ours, NULL);
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
