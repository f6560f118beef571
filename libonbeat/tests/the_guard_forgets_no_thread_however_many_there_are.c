/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The guard of a process that is killed puts back the first and the last of ten thousand threads,
 * through the scheduler that the process had; and neither one that was detached nor the next bearer
 * of a number.
 */
#include <onbeat/reserve.h>

#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../src/reservation.h"
#include "check.h"

#define MANY 10000
#define PAST_ANY_THREAD 0x10000000

/* The calls to the scheduler, by any process. */
struct seen {
	volatile int first, last, detached, others;
};

static struct seen *seen;
static pid_t first, last, detached;

static int get(pid_t tid, struct onbeat_attributes *attributes)
{
	(void)tid;
	*attributes = (struct onbeat_attributes){ .policy = ONBEAT_POLICY_DEADLINE };
	return 0;
}

static int set(pid_t tid, const struct onbeat_attributes *attributes)
{
	/* A thread that leaves with next to nothing has been set before. */
	if (attributes->policy == ONBEAT_POLICY_DEADLINE)
		return 0;
	if (tid == first)
		seen->first++;
	else if (tid == last)
		seen->last++;
	else if (tid == detached)
		seen->detached++;
	else
		seen->others++;
	return 0;
}

static pid_t start_sleeper(void)
{
	pid_t child = fork();

	check(child >= 0);
	if (child == 0)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (child == 0)
		pause();
	return child;
}

static void guard_many_and_be_killed(void)
{
	static const struct onbeat_scheduler scheduler = { get, set };
	struct onbeat_guarded guarded = { .tid = first, .started = onbeat_started_(first) };

	onbeat_scheduler_ = &scheduler;
	check(onbeat_guard_(&guarded) == 0);
	for (int n = 0; n < MANY; n++) {
		guarded.tid = PAST_ANY_THREAD + n;
		check(onbeat_guard_(&guarded) == 0);
	}
	guarded.tid = detached;
	guarded.started = onbeat_started_(detached);
	check(onbeat_guard_(&guarded) == 0);
	onbeat_unguard_(&guarded);
	guarded.tid = last;
	guarded.started = onbeat_started_(last) - 1;
	check(onbeat_guard_(&guarded) == 0);
	guarded.started++;
	check(onbeat_guard_(&guarded) == 0);
	kill(getpid(), SIGKILL);
}

int main(void)
{
	pid_t killed;

	seen = mmap(NULL, sizeof(*seen), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	check(seen != MAP_FAILED);
	first = start_sleeper();
	detached = start_sleeper();
	last = start_sleeper();
	killed = fork();
	check(killed >= 0);
	if (killed == 0)
		guard_many_and_be_killed();
	check(waitpid(killed, NULL, 0) == killed);
	/* The guard begins with the last. */
	for (int i = 0; !seen->first; i++) {
		check(i < 30000);
		usleep(1000);
	}
	check(seen->first == 1 && seen->last == 1);
	check(!seen->detached && !seen->others);
	for (int n = 0; n < 3; n++) {
		pid_t sleeper = n == 0 ? first : n == 1 ? detached : last;

		check(kill(sleeper, SIGKILL) == 0 && waitpid(sleeper, NULL, 0) == sleeper);
	}
	return 0;
}
