/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The portable form of row E3: POSIX can signal a process only, so a router thread passes it on.
 *
 * A timer sends the signal `routed` to the process. The router waits for it with sigwaitinfo and
 * sends ONBEAT_SIGNAL to the thread the timer belongs to. Threads that the program started before
 * it used the library may not have it blocked, and the kernel may give it to them: their handler
 * hands it to the router. A thread is known by its slot in a table that only ever grows, so that a
 * signal on its way to a thread that ended finds an empty slot and is dropped.
 */
#include "within.h"

#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#define MOST_THREADS 4096

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct onbeat_thread *slots[MOST_THREADS];
static pthread_t router;
static int routed;

/* By `routed`, which reached their threads by mistake: pthread_sigqueue is not POSIX. */
static atomic_bool strayed[MOST_THREADS];

static void stray(int number, siginfo_t *info, void *context)
{
	int saved = errno;

	(void)context;
	if (info->si_value.sival_int >= 0 && info->si_value.sival_int < MOST_THREADS) {
		atomic_store(&strayed[info->si_value.sival_int], true);
		pthread_kill(router, number);
	}
	errno = saved;
}

static void pass_on(int slot)
{
	pthread_mutex_lock(&lock);
	if (slot >= 0 && slot < MOST_THREADS && slots[slot])
		pthread_kill(slots[slot]->self, ONBEAT_SIGNAL);
	pthread_mutex_unlock(&lock);
}

static void *route(void *unused)
{
	sigset_t waited_for;

	(void)unused;
	sigemptyset(&waited_for);
	sigaddset(&waited_for, routed);
	for (;;) {
		siginfo_t info;

		if (sigwaitinfo(&waited_for, &info) < 0)
			continue;
		if (info.si_code == SI_TIMER) {
			pass_on(info.si_value.sival_int);
			continue;
		}
		for (int slot = 0; slot < MOST_THREADS; slot++) {
			if (atomic_exchange(&strayed[slot], false))
				pass_on(slot);
		}
	}
	return NULL;
}

/* A notification that waits behind the load it is about would be none. */
static void hurry_router(void)
{
	struct sched_param first = { .sched_priority = sched_get_priority_max(SCHED_FIFO) };

	/* Refused to most processes, which then have what they had. */
	(void)pthread_setschedparam(router, SCHED_FIFO, &first);
}

static int start_router(void)
{
	sigset_t all;
	sigset_t before;
	int error;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	error = pthread_create(&router, NULL, route, NULL);
	if (!error) {
		hurry_router();
		pthread_detach(router);
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return -error;
}

int onbeat_notify_install_(void)
{
	onbeat_signal_ = onbeat_take_signal_(onbeat_handler_);
	routed = onbeat_take_signal_(stray);
	return onbeat_signal_ < 0 || routed < 0 ? -EBUSY : start_router();
}

int onbeat_notify_thread_(struct onbeat_thread *thread)
{
	bool has_slot;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, routed);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	pthread_mutex_lock(&lock);
	thread->slot = 0;
	while (thread->slot < MOST_THREADS && slots[thread->slot])
		thread->slot++;
	has_slot = thread->slot < MOST_THREADS;
	if (has_slot)
		slots[thread->slot] = thread;
	pthread_mutex_unlock(&lock);
	return has_slot ? 0 : -EAGAIN;
}

void onbeat_notify_ended_(struct onbeat_thread *thread)
{
	pthread_mutex_lock(&lock);
	slots[thread->slot] = NULL;
	pthread_mutex_unlock(&lock);
}

/* A child has no other threads: the router and the slots of all others are gone. */
void onbeat_notify_forked_(void)
{
	struct onbeat_thread *survivor = onbeat_thread_if_any_();

	pthread_mutex_init(&lock, NULL);
	for (int slot = 0; slot < MOST_THREADS; slot++) {
		if (slots[slot] != survivor)
			slots[slot] = NULL;
	}
	if (start_router()) {
		fprintf(stderr, "onbeat: no thread to route the notifications\n");
		abort();
	}
}

int onbeat_notify_timer_(struct onbeat_thread *thread, clockid_t clock, timer_t *timer)
{
	struct sigevent event = { 0 };

	event.sigev_notify = SIGEV_SIGNAL;
	event.sigev_signo = routed;
	event.sigev_value.sival_int = thread->slot;
	return timer_create(clock, &event, timer) ? -errno : 0;
}

/* POSIX does not say where a context keeps the stack pointer. */
uintptr_t onbeat_notify_stack_(const void *context)
{
	(void)context;
	return 0;
}

bool onbeat_notify_left_(uintptr_t frame, uintptr_t stack)
{
	(void)frame;
	(void)stack;
	return false;
}
