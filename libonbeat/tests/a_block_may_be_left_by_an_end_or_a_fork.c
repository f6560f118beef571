/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A thread that is cancelled or ends in a block, a program that ends in one, and a fork past a
 * deadline: each goes its way, and no violation comes in. Each in a process that has had no block.
 */
#include <onbeat/within.h>

#include "check.h"

static pthread_key_t key;
static volatile int cleans, cleaned, finallys, violations, went_on;
static pthread_barrier_t in_the_block;

static void outlast_the_deadline(void *unused)
{
	(void)unused;
	cleans++;
	compute_ns(ONBEAT_MS(60));
	cleaned++;
}

/* Protected until it is cancelled: on a machine that stands still the deadline may pass before. */
static void block_that_is_cancelled(void)
{
	onbeat_within_disable();
	onbeat_try_within_rel (ONBEAT_MS(30)) {
		pthread_barrier_wait(&in_the_block);
		pthread_barrier_wait(&in_the_block);
		onbeat_within_enable();
		for (;;)
			sleep(1);
	}
	onbeat_finally {
		pthread_testcancel();
		finallys++;
	}
	onbeat_handle
		onbeat_when (onbeat_deadline_violation) {
			violations++;
		}
	onbeat_end;
	onbeat_within_enable();
}

static void *be_cancelled(void *unused)
{
	pthread_cleanup_push(outlast_the_deadline, NULL);
	block_that_is_cancelled();
	pthread_testcancel();
	went_on = 1;
	pthread_cleanup_pop(0);
	return unused;
}

static void a_thread_that_is_cancelled_leaves_its_block_first(void)
{
	pthread_t thread;
	void *result;

	check(pthread_barrier_init(&in_the_block, NULL, 2) == 0);
	check(pthread_create(&thread, NULL, be_cancelled, NULL) == 0);
	pthread_barrier_wait(&in_the_block);
	check(pthread_cancel(thread) == 0);
	pthread_barrier_wait(&in_the_block);
	check(pthread_join(thread, &result) == 0);
	check(result == PTHREAD_CANCELED && !went_on);
	check(finallys == 1 && violations == 1 && cleaned == 1);
}

/* Whatever a violation has interrupted. */
static void a_thread_can_be_cancelled_where_it_could_before(void)
{
	int pipes[2], state, type;
	char byte;

	check(pipe(pipes) == 0);
	check_left_by(onbeat_deadline_violation, onbeat_try_within_rel (ONBEAT_MS(5)), check(read(pipes[0], &byte, 1) == 1));
	check(pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &state) == 0);
	check(pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &type) == 0);
	check(state == PTHREAD_CANCEL_ENABLE && type == PTHREAD_CANCEL_DEFERRED);
}

static void *end_in_a_block(void *unused)
{
	check(pthread_setspecific(key, &key) == 0);
	onbeat_try_within_rel (ONBEAT_MS(30)) {
		onbeat_try_within_rel (ONBEAT_MS(20)) {
			pthread_exit(NULL);
		}
		onbeat_handle
		onbeat_end;
	}
	onbeat_handle
		onbeat_when (onbeat_deadline_violation) {
			/* A machine that stood still: right if the end has not begun. */
			check(cleans == 0);
		}
	onbeat_end;
	return unused;
}

static void a_thread_ends_though_the_deadline_passes_in_a_destructor(void)
{
	cleans = cleaned = 0;
	check(pthread_key_create(&key, outlast_the_deadline) == 0);
	in_a_thread(end_in_a_block);
	check(cleaned == 1);
}

static void (*end)(int);

static void outlast_the_deadline_at_exit(void)
{
	outlast_the_deadline(NULL);
}

static void end_the_program(void)
{
	check(atexit(outlast_the_deadline_at_exit) == 0 && at_quick_exit(outlast_the_deadline_at_exit) == 0);
	onbeat_try_within_rel (ONBEAT_MS(30)) {
		end(0);
	}
	onbeat_handle
		onbeat_when (onbeat_deadline_violation) {
			/* The same. */
			_exit(cleans);
		}
	onbeat_end;
	_exit(5);
}

static void exit_ends_the_program_with_its_status(void)
{
	end = exit;
	in_a_child(end_the_program);
	end = quick_exit;
	in_a_child(end_the_program);
}

static volatile bool prepares, compute_first;

static void use_a_section(int number)
{
	(void)number;
	onbeat_within_disable();
	onbeat_within_enable();
}

static void use_a_block(int number)
{
	(void)number;
	onbeat_try {
	}
	onbeat_handle
	onbeat_end;
}

/* Registered before the first block, it runs while the library holds its lock. */
static void before_fork(void)
{
	prepares = true;
	if (compute_first)
		compute_ns(ONBEAT_MS(60));
	raise(SIGUSR1);
	compute_ns(ONBEAT_MS(60));
	prepares = false;
}

static void fork_once(void)
{
	pid_t child = fork();

	if (child == 0)
		_exit(0);
	wait_for(child);
}

static void fork_past_a_deadline(void)
{
	volatile pid_t child = -1;
	volatile int violated = 0;

	onbeat_within_disable();
	onbeat_try_within_rel (ONBEAT_MS(30)) {
		child = fork();
	}
	onbeat_finally {
		check(!prepares);
		if (child == 0)
			_exit(0);
	}
	onbeat_handle
		onbeat_when (onbeat_deadline_violation) {
			violated++;
		}
	onbeat_end;
	onbeat_within_enable();
	check(violated == 1);
	wait_for(child);
/* In musl a program that leaves a function of pthread_atfork(3) by a jump cannot fork again. */
#ifdef __GLIBC__
	onbeat_try_within_rel (ONBEAT_MS(30)) {
		fork_once();
	}
	onbeat_handle
		onbeat_when (onbeat_deadline_violation) {
			check(!prepares);
		}
	onbeat_end;
#endif
	fork_once();
}

static void try_forks(void)
{
	check(pthread_atfork(before_fork, NULL, NULL) == 0);
	fork_past_a_deadline();
}

static void a_signal_handler_during_a_fork_lets_no_violation_in(void)
{
	static void (*const handlers[])(int) = { use_a_section, use_a_block };

	for (int i = 0; i < 4; i++) {
		compute_first = i % 2;
		check(signal(SIGUSR1, handlers[i / 2]) != SIG_ERR);
		in_a_child(try_forks);
	}
}

int main(void)
{
	run_test(a_signal_handler_during_a_fork_lets_no_violation_in);
	run_test(exit_ends_the_program_with_its_status);
	run_test(a_thread_that_is_cancelled_leaves_its_block_first);
	run_test(a_thread_can_be_cancelled_where_it_could_before);
	run_test(a_thread_ends_though_the_deadline_passes_in_a_destructor);
	return 0;
}
