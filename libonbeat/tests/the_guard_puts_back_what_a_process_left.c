/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What stands behind reservations, seen by a scheduler of the test's own: what is asked of the
 * kernel, and what the guard of a process that ends puts back. A signal's handler may fork, or jump
 * out of a block, while its own thread speaks to the guard or forks; and any thread may fork while
 * another one does.
 */
#include <onbeat/reserve.h>
#include <onbeat/within.h>

#include <errno.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "../src/reservation.h"
#include "check.h"

#define NO_THREAD 0x10000000
#define MANY 10000
#define TIMES 20

static struct onbeat_attributes in_force;
static bool reclaims = true, is_full;
static pid_t process;
static int changes;

static int get_own(pid_t tid, struct onbeat_attributes *attributes)
{
	/* The refusal asks of all threads what they hold. */
	if (tid != (pid_t)syscall(SYS_gettid))
		return -ESRCH;
	*attributes = in_force;
	return 0;
}

static int set_own(pid_t tid, const struct onbeat_attributes *attributes)
{
	check(tid == (pid_t)syscall(SYS_gettid));
	if (!reclaims && (attributes->flags & ONBEAT_RECLAIM))
		return -EINVAL;
	changes++;
	if (is_full)
		return -EBUSY;
	in_force = *attributes;
	return 0;
}

static struct onbeat_reservation *attached(void)
{
	static const struct onbeat_scheduler own = { get_own, set_own };
	struct onbeat_reservation *reservation;

	onbeat_scheduler_ = &own;
	check(onbeat_reservation_create(&reservation, 2 * MS, 10 * MS, 10 * MS) == 0);
	check(onbeat_reservation_attach(reservation, 0) == 0);
	check(in_force.runtime_ns == 2 * MS);
	return reservation;
}

static bool is_soft(void)
{
	check(in_force.policy == ONBEAT_POLICY_DEADLINE && in_force.flags & ONBEAT_RESET_ON_FORK);
	return in_force.flags & ONBEAT_RECLAIM;
}

/* Or where the kernel does not reclaim. */
static void a_reservation_is_a_ceiling_only_where_it_is_hard(void)
{
	struct onbeat_reservation *reservation = attached();

	check(is_soft());
	check(onbeat_reservation_set_hard(reservation, 1) == 0 && !is_soft());
	check(onbeat_reservation_change(reservation, 3 * MS, 10 * MS, 10 * MS) == 0 && !is_soft());
	check(onbeat_reservation_set_hard(reservation, 0) == 0 && is_soft());
	check(in_force.runtime_ns == 3 * MS);
	reclaims = false;
	check(onbeat_reservation_change(reservation, 4 * MS, 10 * MS, 10 * MS) == 0 && !is_soft());
	check(in_force.runtime_ns == 4 * MS);
	onbeat_reservation_destroy(reservation);
	check(in_force.policy != ONBEAT_POLICY_DEADLINE);
	reclaims = true;
}

static void in_the_child(struct onbeat_reservation *reservation, pid_t parent)
{
	struct onbeat_reservation_state state;

	changes = 0;
	check(onbeat_reservation_change(reservation, 3 * MS, 10 * MS, 10 * MS) == 0);
	check(onbeat_reservation_detach(reservation, parent) == -ENOENT);
	check(onbeat_reservation_detach_process(reservation, parent) == -ENOENT);
	check(onbeat_reservation_query(reservation, &state) == 0);
	check(state.threads == 0 && state.runtime_ns == 3 * MS && state.consumed_ns == 0 && changes == 0);
	check(onbeat_reservation_attach(reservation, 0) == 0 && changes == 1);
	check(onbeat_reservation_query(reservation, &state) == 0 && state.threads == 1);
	onbeat_reservation_destroy(reservation);
	check(changes == 2);
	exit(0);
}

static void a_child_holds_nothing_of_its_parents(void)
{
	struct onbeat_reservation *reservation = attached();
	struct onbeat_reservation_state state;
	int before = changes;
	pid_t child = fork();

	if (child == 0)
		in_the_child(reservation, process);
	wait_for(child);
	check(onbeat_reservation_query(reservation, &state) == 0);
	check(state.threads == 1 && state.runtime_ns == 2 * MS && changes == before);
	onbeat_reservation_destroy(reservation);
	check(changes == before + 1);
}

/* The thread keeps what it had from us, and the caller is told. */
static void what_has_no_room_to_be_put_back_is_told(void)
{
	struct onbeat_reservation *reservation;
	struct onbeat_reservation_state state;

	in_force = (struct onbeat_attributes){
		.policy = ONBEAT_POLICY_DEADLINE, .runtime_ns = 50 * MS, .deadline_ns = 100 * MS, .period_ns = 100 * MS
	};
	reservation = attached();
	check(onbeat_reservation_detach(reservation, 0) == 0);
	check(in_force.runtime_ns == 50 * MS && in_force.period_ns == 100 * MS);
	check(onbeat_reservation_attach(reservation, 0) == 0);
	is_full = true;
	check(onbeat_reservation_detach(reservation, 0) == -EBUSY);
	check(strstr(onbeat_reservation_reason(), "asks for 500 thousandths of a CPU"));
	check(in_force.runtime_ns == 2 * MS);
	check(onbeat_reservation_query(reservation, &state) == 0 && state.threads == 0);
	check(onbeat_reservation_detach(reservation, 0) == -ENOENT);
	onbeat_reservation_destroy(reservation);
}

/* The calls to the scheduler: for the first, last and detached thread, and others. */
static volatile int *seen;
static pid_t sleepers[3];

static int get_any(pid_t tid, struct onbeat_attributes *attributes)
{
	(void)tid;
	*attributes = (struct onbeat_attributes){ .policy = ONBEAT_POLICY_DEADLINE };
	return 0;
}

static int set_any(pid_t tid, const struct onbeat_attributes *attributes)
{
	int at = 0;

	/* A thread that leaves with next to nothing has been set before. */
	if (attributes->policy == ONBEAT_POLICY_DEADLINE)
		return 0;
	while (at < 3 && sleepers[at] != tid)
		at++;
	seen[at]++;
	return 0;
}

static void guard_thread(pid_t tid, uint64_t started)
{
	struct onbeat_guarded guarded = { .tid = tid, .started = started };

	check(onbeat_guard_(&guarded) == 0);
}

static void guard_many_and_be_killed(void)
{
	static const struct onbeat_scheduler any = { get_any, set_any };

	onbeat_scheduler_ = &any;
	guard_thread(sleepers[0], onbeat_started_(sleepers[0]));
	for (int n = 0; n < MANY; n++)
		guard_thread(NO_THREAD + n, onbeat_started_(sleepers[0]));
	guard_thread(sleepers[2], onbeat_started_(sleepers[2]));
	onbeat_unguard_(&(struct onbeat_guarded){ .tid = sleepers[2] });
	/* A number that was used before. */
	guard_thread(sleepers[1], onbeat_started_(sleepers[1]) - 1);
	guard_thread(sleepers[1], onbeat_started_(sleepers[1]));
	kill(getpid(), SIGKILL);
}

static void the_guard_forgets_no_thread_however_many_there_are(void)
{
	pid_t killed;

	seen = mmap(NULL, 4 * sizeof(*seen), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	check(seen != MAP_FAILED);
	for (int i = 0; i < 3; i++) {
		sleepers[i] = fork();
		if (sleepers[i] == 0)
			prctl(PR_SET_PDEATHSIG, SIGKILL);
		while (sleepers[i] == 0)
			pause();
	}
	killed = fork();
	if (killed == 0)
		guard_many_and_be_killed();
	check(killed > 0 && waitpid(killed, NULL, 0) == killed);
	/* The guard begins with the last. */
	for (int i = 0; !seen[0]; i++) {
		check(i < 30000);
		usleep(1000);
	}
	check(seen[0] == 1 && seen[1] == 1 && !seen[2] && !seen[3]);
	for (int i = 0; i < 3; i++)
		check(kill(sleepers[i], SIGKILL) == 0 && waitpid(sleepers[i], NULL, 0) == sleepers[i]);
}

static const struct onbeat_guarded nobody = { .tid = NO_THREAD, .started = 1 };
static volatile bool raises, raises_in_fork, is_late;
static volatile int forked;

/* The library calls it while it has the lock. The guard, a bare clone, is not this process. */
ssize_t send(int socket, const void *buffer, size_t length, int flags)
{
	if (raises && getpid() == process)
		raise(SIGUSR1);
	if (is_late && getpid() == process)
		compute_ns(ONBEAT_MS(20));
	return syscall(SYS_sendto, socket, buffer, length, flags, NULL, 0);
}

/* Registered first, it runs last, while the lock is held. */
static void before_fork(void)
{
	if (raises_in_fork) {
		raises_in_fork = false;
		raise(SIGUSR1);
	}
}

static void speak(void)
{
	check(onbeat_guard_(&nobody) == 0);
	onbeat_unguard_(&nobody);
}

/* The child can have a guard of its own. */
static void fork_in_handler(int number)
{
	(void)number;
	in_a_child(speak);
	forked++;
}

/* SIGUSR2 is, and no other. (The portable form has a real-time signal blocked.) */
static void check_blocked(void)
{
	sigset_t now;

	check(pthread_sigmask(SIG_SETMASK, NULL, &now) == 0);
	for (int number = 1; number < SIGRTMIN; number++)
		check(sigismember(&now, number) <= (number == SIGUSR2));
	check(sigismember(&now, SIGUSR2));
}

static void a_handler_may_fork_while_its_thread_speaks_to_the_guard(void)
{
	pid_t child;

	check(signal(SIGUSR1, fork_in_handler) != SIG_ERR);
	speak();
	check_blocked();
	raises = true;
	for (int n = 0; n < TIMES; n++)
		speak();
	raises = false;
	check(forked == 2 * TIMES);
	check_blocked();

	raises_in_fork = true;
	child = fork();
	check_blocked();
	if (child == 0)
		_exit(0);
	wait_for(child);
	check(forked == 2 * TIMES + 1);
}

static void a_violated_block_is_left_once_the_guard_has_answered(void)
{
	is_late = true;
	for (volatile int n = 0; n < TIMES; n++) {
		check_left_by(onbeat_deadline_violation, onbeat_try_within_rel (ONBEAT_MS(2)),
			      if (n % 2) onbeat_guard_(&nobody); else onbeat_unguard_(&nobody); compute_for_ever());
		check_blocked();
	}
	is_late = false;
}

static _Atomic bool over;
static _Atomic int spoken;

static void *speak_all_the_time(void *unused)
{
	while (!over) {
		speak();
		spoken++;
	}
	return unused;
}

/* Which hardly does anything else, so that most forks meet it in the middle of a word. */
static void a_thread_may_fork_while_another_speaks(void)
{
	pthread_t speaker;

	check(pthread_create(&speaker, NULL, speak_all_the_time, NULL) == 0);
	for (int n = 0; n < 200; n++) {
		int before = spoken;

		while (spoken == before)
			usleep(10);
		in_a_child(speak);
	}
	over = true;
	check(pthread_join(speaker, NULL) == 0);
}

int main(void)
{
	sigset_t blocked;

	alarm(120);
	process = getpid();
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGUSR2);
	check(pthread_sigmask(SIG_SETMASK, &blocked, NULL) == 0);
	check(pthread_atfork(before_fork, NULL, NULL) == 0);
	run_test(a_reservation_is_a_ceiling_only_where_it_is_hard);
	run_test(a_child_holds_nothing_of_its_parents);
	run_test(what_has_no_room_to_be_put_back_is_told);
	run_test(the_guard_forgets_no_thread_however_many_there_are);
	run_test(a_handler_may_fork_while_its_thread_speaks_to_the_guard);
	run_test(a_violated_block_is_left_once_the_guard_has_answered);
	run_test(a_thread_may_fork_while_another_speaks);
	return 0;
}
