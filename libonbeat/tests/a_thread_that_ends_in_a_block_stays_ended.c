/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A thread that is cancelled in a block with a constraint leaves the block first, and is cancelled
 * then. One that calls pthread_exit(3) in a block ends, also if the deadline passes in a destructor
 * of its data.
 */
#include <onbeat/within.h>

#include <pthread.h>
#include <unistd.h>

#include "check.h"

static pthread_barrier_t in_the_block;
static pthread_key_t key;
static volatile int cleans, cleaned, finallys, violations, went_on;

static void outlast_the_deadline(void *argument)
{
	(void)argument;
	cleans++;
	compute_ns(ONBEAT_MS(60));
	cleaned++;
}

static void block_that_is_cancelled(void)
{
	/*
	 * Protected until it is cancelled: on a machine that stands still the deadline may pass
	 * before.
	 */
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

static void cancel_in_a_block(void)
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

/* Cancelled at no other place than before, whatever a violation has interrupted. */
static void *is_cancelled_as_before(void *unused)
{
	int pipes[2], state, type;
	char byte;

	check(pipe(pipes) == 0);
	onbeat_try_within_rel (ONBEAT_MS(5)) {
		check(read(pipes[0], &byte, 1) == 1);
	}
	onbeat_handle
		onbeat_when (onbeat_deadline_violation) {
		}
	onbeat_end;
	check(pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &state) == 0);
	check(pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &type) == 0);
	check(state == PTHREAD_CANCEL_ENABLE && type == PTHREAD_CANCEL_DEFERRED);
	close(pipes[0]);
	close(pipes[1]);
	return unused;
}

static void *end_in_a_block(void *result)
{
	check(pthread_setspecific(key, result) == 0);
	onbeat_try_within_rel (ONBEAT_MS(30)) {
		onbeat_try_within_rel (ONBEAT_MS(20)) {
			pthread_exit(result);
		}
		onbeat_handle
		onbeat_end;
	}
	onbeat_handle
		onbeat_when (onbeat_deadline_violation) {
			/*
			 * A machine that stood still before the end: right as well, if that has not
			 * begun.
			 */
			check(cleans == 1);
		}
	onbeat_end;
	return result;
}

static void run(void *(*function)(void *))
{
	pthread_t thread;
	void *result;

	check(pthread_create(&thread, NULL, function, &key) == 0);
	check(pthread_join(thread, &result) == 0);
	check(result == &key);
}

int main(void)
{
	check(pthread_key_create(&key, outlast_the_deadline) == 0);
	cancel_in_a_block();
	run(is_cancelled_as_before);
	run(end_in_a_block);
	return 0;
}
