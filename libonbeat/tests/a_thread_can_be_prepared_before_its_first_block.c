/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * onbeat_within_prepare() makes what a thread's blocks need, and is refused where a block would end
 * the program.
 */
#include <onbeat/within.h>

#include <errno.h>
#include <pthread.h>
#include <sys/resource.h>

#include "check.h"

static void *run(void *unused)
{
	struct rlimit before, none;
	volatile int violated = 0;

	check(getrlimit(RLIMIT_SIGPENDING, &before) == 0);
	none = before;
	none.rlim_cur = 0;
	check(setrlimit(RLIMIT_SIGPENDING, &none) == 0);
	check(onbeat_within_prepare() == -EAGAIN);
	check(setrlimit(RLIMIT_SIGPENDING, &before) == 0);
	check(onbeat_within_prepare() == 0);
	/* All there is to make has been made. */
	check(setrlimit(RLIMIT_SIGPENDING, &none) == 0);
	check(onbeat_within_prepare() == 0);
	onbeat_try_within_rel (ONBEAT_S(100)) {
		onbeat_try_within_wcet (ONBEAT_S(100)) {
		}
		onbeat_handle
		onbeat_end;
	}
	onbeat_handle
	onbeat_end;
	check(setrlimit(RLIMIT_SIGPENDING, &before) == 0);
	onbeat_try_within_rel (ONBEAT_MS(2)) {
		compute_for_ever();
	}
	onbeat_handle
		onbeat_when (onbeat_deadline_violation) {
			violated++;
		}
	onbeat_end;
	check(violated == 1);
	return unused;
}

int main(void)
{
	pthread_t thread;

	check(pthread_create(&thread, NULL, run, NULL) == 0);
	check(pthread_join(thread, NULL) == 0);
	return 0;
}
