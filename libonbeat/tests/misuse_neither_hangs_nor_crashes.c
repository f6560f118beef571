/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Some forty wrong programs. Each either does no harm and is answered, or, with ONBEAT_DEBUG in the
 * environment, is ended with the reason and its place in the source, and without goes on; none
 * hangs, crashes or loses a violation.
 */
#include <onbeat/job.h>
#include <onbeat/mdn.h>
#include <onbeat/reserve.h>
#include <onbeat/within.h>

#include <limits.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/resource.h>

#include "check.h"

static jmp_buf outside;
static int failed;

/* A checked block of `ns` that checks for ever, after `misuse`: its violation has to end it. */
static void expire(int64_t ns, void (*misuse)(void))
{
	volatile int violated = 0;

	onbeat_try_checked_rel (ns) {
		misuse();
		for (;;)
			onbeat_check();
	}
	onbeat_handle
		onbeat_when (onbeat_deadline_violation) {
			violated++;
		}
	onbeat_end;
	check(violated == 1);
}

static void nothing(void)
{
}

static void checks_outside(void)
{
	for (int i = 0; i < 1000; i++)
		onbeat_check();
}

static void block_all_signals(void)
{
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, NULL);
}

/* No check can know of the violation then; the end of the block does. */
static void blocks_all_signals(void)
{
	volatile int violated = 0;

	onbeat_try_checked_rel (ONBEAT_MS(2)) {
		block_all_signals();
		compute_ns(ONBEAT_MS(4));
	}
	onbeat_handle
		onbeat_when (onbeat_deadline_violation) {
			violated++;
		}
	onbeat_end;
	check(violated == 1);
}

static void blocks_all_signals_before(void)
{
	block_all_signals();
	expire(ONBEAT_MS(2), nothing);
}

static void blocks_all_signals_between(void)
{
	expire(ONBEAT_MS(2), nothing);
	block_all_signals();
	expire(ONBEAT_MS(2), nothing);
	expire(ONBEAT_MS(2), block_all_signals);
}

static volatile int signals;

static void count_signal(int number)
{
	(void)number;
	signals++;
}

static void handles_signals_of_its_own(void)
{
	const struct sigaction handled = { .sa_handler = count_signal };

	for (int number = SIGRTMIN + 5; number < SIGRTMIN + 9; number++)
		check(sigaction(number, &handled, NULL) == 0);
	for (int i = 0; i < 5; i++)
		expire(ONBEAT_MS(2), nothing);
	check(signals == 0);
	for (int number = SIGRTMIN + 5; number < SIGRTMIN + 9; number++)
		check(raise(number) == 0);
	check(signals == 4);
}

static void take_all_signals(void)
{
	for (int number = SIGRTMIN; number <= SIGRTMAX; number++)
		signal(number, count_signal);
}

static void takes_all_signals(void)
{
	expire(ONBEAT_MS(2), take_all_signals);
	expire(ONBEAT_MS(2), nothing);
}

static void sets_half_a_millisecond(void)
{
	check(ONBEAT_MS(0.5) == 500000 && ONBEAT_S(1.5) == ONBEAT_MS(1500) && ONBEAT_US(0.25) == 250);
	check(ONBEAT_S(INT64_C(9000000000)) == INT64_C(9000000000) * 1000000000);
	expire(ONBEAT_MS(0.5), nothing);
}

static int64_t limit_that_throws(void)
{
	onbeat_throw(onbeat_exception);
}

/* Out of the block around; the body does not run. */
#define THROWS_IN_ITS_LIMIT(constrained)                  \
	onbeat_try {                                      \
		constrained (limit_that_throws()) {       \
			check(0);                         \
		}                                         \
		onbeat_handle                             \
			onbeat_when (onbeat_exception) {  \
				check(0);                 \
			}                                 \
		onbeat_end;                               \
	}                                                 \
	onbeat_handle                                     \
		onbeat_when (onbeat_exception) {          \
			caught++;                         \
		}                                         \
	onbeat_end

static void throws_in_its_limit(void)
{
	volatile int caught = 0;

	THROWS_IN_ITS_LIMIT(onbeat_try_within_rel);
	THROWS_IN_ITS_LIMIT(onbeat_try_within_abs);
	THROWS_IN_ITS_LIMIT(onbeat_try_within_wcet);
	check(caught == 3);
}

static void raise_all_signals(void)
{
	for (int number = SIGRTMIN; number <= SIGRTMAX; number++) {
		struct sigaction now;

		sigaction(number, NULL, &now);
		if (now.sa_handler != SIG_DFL)
			raise(number);
	}
}

static void raises_the_librarys_signals(void)
{
	expire(ONBEAT_MS(20), raise_all_signals);
}

/* A program whose checked block does `how`, and which then has another one. */
#define LEAVES(name, how)                                  \
	static void name(void)                             \
	{                                                  \
		for (volatile int i = 0; i < 2; i++) {     \
			setjmp(outside);                   \
			onbeat_try_checked_rel (ONBEAT_S(100)) { \
				how;                       \
			}                                  \
			onbeat_handle                      \
			onbeat_end;                        \
		}                                          \
		expire(ONBEAT_MS(2), nothing);             \
	}

LEAVES(return_in_it, return)
LEAVES(breaks, break)
LEAVES(continues, continue)
LEAVES(jumps, if (i++ < 3) longjmp(outside, 1))
LEAVES(throws_what_nobody_takes, onbeat_throw_value(onbeat_exception, NULL))
LEAVES(rethrows_what_was_not_caught, onbeat_rethrow())

static void returns(void)
{
	return_in_it();
	expire(ONBEAT_MS(2), nothing);
}

static void goes_out(void)
{
	onbeat_try {
		onbeat_within_disable();
		goto out;
	}
	onbeat_handle
	onbeat_end;
out:
	expire(ONBEAT_MS(2), nothing);
}

static void continues_in_finally(void)
{
	onbeat_try {
	}
	onbeat_finally {
		continue;
	}
	onbeat_handle
	onbeat_end;
	expire(ONBEAT_MS(2), nothing);
}

static void continues_in_a_handler(void)
{
	onbeat_try {
		onbeat_throw(onbeat_exception);
	}
	onbeat_handle
		onbeat_when (onbeat_exception) {
			continue;
		}
	onbeat_end;
	expire(ONBEAT_MS(2), nothing);
}

static void goes_out_of_finally(void)
{
	onbeat_try {
	}
	onbeat_finally {
		goto out;
	}
	onbeat_handle
	onbeat_end;
out:
	expire(ONBEAT_MS(2), nothing);
}

static void return_in_a_handler(void)
{
	onbeat_try {
		onbeat_throw(onbeat_exception);
	}
	onbeat_handle
		onbeat_when (onbeat_exception) {
			return;
		}
	onbeat_end;
}

static void returns_in_a_handler(void)
{
	return_in_a_handler();
	expire(ONBEAT_MS(2), nothing);
}

static void jumps_out_of_an_inner_block(void)
{
	onbeat_try {
		if (!setjmp(outside)) {
			onbeat_try {
				longjmp(outside, 1);
			}
			onbeat_handle
			onbeat_end;
		}
	}
	onbeat_handle
	onbeat_end;
	expire(ONBEAT_MS(2), nothing);
}

__attribute__((noinline)) static void jump_out(void)
{
	onbeat_try_within_rel (ONBEAT_S(100)) {
		onbeat_within_disable();
		longjmp(outside, 1);
	}
	onbeat_handle
	onbeat_end;
}

static void jumps_out_of_a_function(void)
{
	if (!setjmp(outside))
		jump_out();
	/* Seen at the next block that this function enters. */
	onbeat_try {
	}
	onbeat_handle
	onbeat_end;
	expire(ONBEAT_MS(2), nothing);
}

static void enable(void)
{
	onbeat_within_enable();
}

static void enables_too_often(void)
{
	expire(ONBEAT_MS(2), enable);
}

static void nest(int depth)
{
	onbeat_try_checked_rel (ONBEAT_S(100)) {
		if (depth <= onbeat_max_depth())
			nest(depth + 1);
	}
	onbeat_handle
	onbeat_end;
}

static void nests_too_deep(void)
{
	nest(0);
}

static void disables_for_ever(void)
{
	volatile int handled = 0;

	onbeat_try_checked_rel (ONBEAT_MS(2)) {
		onbeat_within_disable();
		compute_ns(ONBEAT_MS(4));
	}
	onbeat_handle
		onbeat_when (onbeat_deadline_violation) {
			handled++;
		}
	onbeat_end;
	check(handled == 1);
	expire(ONBEAT_MS(2), nothing);
}

static void fork_a_child(void)
{
	int status;
	pid_t child = fork();

	/* The child goes on to check in the block of its parent's, which has expired for it too. */
	if (child)
		check(waitpid(child, &status, 0) == child && status == 0);
}

static void forks_in_a_block(void)
{
	expire(ONBEAT_MS(20), fork_a_child);
}

static void *check_elsewhere(void *unused)
{
	compute_ns(ONBEAT_MS(5));
	for (int i = 0; i < 1000; i++)
		onbeat_check();
	return unused;
}

static void check_in_a_thread(void)
{
	pthread_t thread;

	check(pthread_create(&thread, NULL, check_elsewhere, NULL) == 0);
	check(pthread_join(thread, NULL) == 0);
}

static void checks_for_another_thread(void)
{
	expire(ONBEAT_MS(2), check_in_a_thread);
}

static void check_in_handler(int number)
{
	(void)number;
	onbeat_check();
}

static void alarm_now(void)
{
	signal(SIGALRM, check_in_handler);
	compute_ns(ONBEAT_MS(4));
	raise(SIGALRM);
}

static void checks_in_a_signal_handler(void)
{
	expire(ONBEAT_MS(2), alarm_now);
}

static void has_no_timers(void)
{
	const struct rlimit none = { 0, 0 };

	check(setrlimit(RLIMIT_SIGPENDING, &none) == 0);
	check(onbeat_within_prepare() < 0);
}

static void has_no_timers_and_goes_on(void)
{
	has_no_timers();
	expire(ONBEAT_MS(2), nothing);
}

static void *no_reservation(int64_t runtime_ns, int64_t deadline_ns, int64_t period_ns)
{
	struct onbeat_reservation *none = (void *)&outside;

	check(onbeat_reservation_create(&none, runtime_ns, deadline_ns, period_ns) == -EINVAL && !none);
	check(*onbeat_reservation_reason());
	return none;
}

static void reserves_nonsense(void)
{
	struct onbeat_reservation *none = (void *)&outside;

	check(onbeat_keep_audio_thread(&none, 480, 0, 1) == -EINVAL && !none);
	check(onbeat_keep_audio_thread(&none, 480, 48000, 10000001) == -EINVAL && !none);
	no_reservation(0, 1, 1);
	no_reservation(-1, -1, -1);
	no_reservation(2, 1, 3);
	no_reservation(1, 3, 2);
	no_reservation(INT64_MIN, INT64_MAX, INT64_MAX);
	onbeat_reservation_destroy(no_reservation(0, 0, 0));
}

static struct onbeat_reservation *a_reservation(int64_t ns)
{
	struct onbeat_reservation *made;

	check(onbeat_reservation_create(&made, ns, ns, ns) == 0);
	return made;
}

/* Attaching it is refused by the kernel, or before. */
static void reserves_all_time(void)
{
	struct onbeat_reservation *all = a_reservation(INT64_MAX);

	check(onbeat_reservation_attach(all, 0) < 0 && *onbeat_reservation_reason());
	onbeat_reservation_destroy(all);
}

static void attaches_what_is_not_there(void)
{
	struct onbeat_reservation *it = a_reservation(ONBEAT_MS(1));
	static const pid_t none[] = { -1, INT_MIN, INT_MAX, 1 };

	for (unsigned i = 0; i < sizeof(none) / sizeof(*none); i++) {
		check(onbeat_reservation_attach(it, none[i]) == -ESRCH);
		check(onbeat_reservation_detach(it, none[i]) == -ENOENT);
		check(onbeat_reservation_attach_process(it, none[i]) < 0);
		check(onbeat_reservation_detach_process(it, none[i]) == -ENOENT);
		check(*onbeat_reservation_reason());
	}
	onbeat_reservation_destroy(it);
}

static void changes_to_nonsense(void)
{
	struct onbeat_reservation *it = a_reservation(ONBEAT_MS(1));
	struct onbeat_reservation_state state;

	check(onbeat_reservation_change(it, 2, 1, 1) == -EINVAL);
	check(onbeat_reservation_set_hard(it, -7) == 0);
	check(onbeat_reservation_query(it, &state) == 0);
	check(state.period_ns == ONBEAT_MS(1) && state.threads == 0 && state.consumed_ns == 0);
	onbeat_reservation_destroy(it);
}

static void detaches_in_the_child(void)
{
	struct onbeat_reservation *it = a_reservation(ONBEAT_MS(1));

	fork_a_child();
	check(onbeat_reservation_detach(it, 0) == -ENOENT);
	onbeat_reservation_destroy(it);
}

static void ignores_that_create_failed(void)
{
	struct onbeat_reservation *none = no_reservation(3, 2, 1);
	struct onbeat_reservation_state state;
	int64_t remaining_ns;

	check(onbeat_reservation_share(none) == -EINVAL);
	check(onbeat_reservation_attach(none, 0) == -EINVAL);
	check(onbeat_reservation_attach_process(none, 0) == -EINVAL);
	check(onbeat_reservation_change(none, 1, 2, 3) == -EINVAL);
	check(onbeat_reservation_set_hard(none, 1) == -EINVAL);
	check(onbeat_reservation_query(none, &state) == -EINVAL);
	check(onbeat_reservation_remaining(none, &remaining_ns) == -EINVAL);
	check(onbeat_reservation_detach(none, 0) == -EINVAL);
	check(onbeat_reservation_detach_process(none, 0) == -EINVAL);
	check(strstr(onbeat_reservation_reason(), "create"));
}

static void shares_without_a_service(void)
{
	struct onbeat_reservation *it = a_reservation(ONBEAT_MS(1));
	int64_t remaining_ns;

	setenv("DBUS_SYSTEM_BUS_ADDRESS", "unix:path=/nonexistent", 1);
	check(onbeat_reservation_remaining(it, &remaining_ns) == -EINVAL);
	check(onbeat_reservation_share(it) == -EPERM);
	check(strstr(onbeat_reservation_reason(), "systemctl start onbeat"));
	onbeat_reservation_destroy(it);
}

static void asks_why_before_anything_failed(void)
{
	check(onbeat_reservation_reason());
}

static void marks_without_order(void)
{
	errno = 7;
	for (int i = 0; i < 1000; i++) {
		onbeat_job_end();
		onbeat_job_begin();
		onbeat_job_begin();
		onbeat_realtime_start(-i, INT_MIN + i);
		onbeat_realtime_finish_job();
		onbeat_realtime_exit();
		onbeat_realtime_exit();
		onbeat_mdn();
	}
	check(errno == 7);
}

static void mark_in_handler(int number)
{
	(void)number;
	onbeat_mdn();
}

static void marks_in_a_signal_handler(void)
{
	signal(SIGALRM, mark_in_handler);
	raise(SIGALRM);
	expire(ONBEAT_MS(2), marks_without_order);
}

static void marks_without_descriptors(void)
{
	const struct rlimit none = { 0, 100 }, some = { 100, 100 };

	check(setrlimit(RLIMIT_NOFILE, &none) == 0);
	marks_without_order();
	/* Whether it may mark is not decided by that. */
	check(onbeat_marking_ == 0);
	check(setrlimit(RLIMIT_NOFILE, &some) == 0);
	onbeat_mdn();
	check(onbeat_marking_ != 0);
}

static void writes_figures_nowhere(void)
{
	check(onbeat_benchmark_write("/proc/none/table", "/proc/none/json") < 0);
}

/* Answered in the program. */
static void (*const answered[])(void) = {
	checks_outside,
	blocks_all_signals,
	blocks_all_signals_before,
	blocks_all_signals_between,
	handles_signals_of_its_own,
	takes_all_signals,
	sets_half_a_millisecond,
	throws_in_its_limit,
	raises_the_librarys_signals,
	disables_for_ever,
	forks_in_a_block,
	checks_for_another_thread,
	checks_in_a_signal_handler,
	reserves_nonsense,
	reserves_all_time,
	attaches_what_is_not_there,
	changes_to_nonsense,
	detaches_in_the_child,
	ignores_that_create_failed,
	shares_without_a_service,
	asks_why_before_anything_failed,
	marks_without_order,
	marks_in_a_signal_handler,
	marks_without_descriptors,
	writes_figures_nowhere,
};

struct ended {
	void (*program)(void);
	const char *words;
};

/* Ended with these words. */
static const struct ended ended[] = {
	{ throws_what_nobody_takes, "no block handles it" },
	{ rethrows_what_was_not_caught, "rethrow" },
	{ nests_too_deep, "nested deeper than" },
	{ has_no_timers_and_goes_on, "timer" },
};

/* The same if debugging is wanted; else they go on. */
static const struct ended misused[] = {
	{ returns, "left by return" },
	{ breaks, "left by return, goto or break" },
	{ continues, "left by continue" },
	{ jumps, "left by longjmp" },
	{ goes_out, "left by return, goto or break" },
	{ continues_in_finally, "left by continue" },
	{ continues_in_a_handler, "left by continue" },
	{ goes_out_of_finally, "left by return, goto or break" },
	{ returns_in_a_handler, "left by return, goto or break" },
	{ jumps_out_of_an_inner_block, "left by longjmp" },
	{ jumps_out_of_a_function, "left by longjmp" },
	{ enables_too_often, "without onbeat_within_disable" },
};

#define COUNT(table) (sizeof(table) / sizeof(*(table)))

/* Runs it in a child, which is to end with these words; by itself if they are NULL. */
static void run(const char *table, unsigned i, void (*program)(void), int debug,
		const char *words)
{
	char text[1024];
	ssize_t length;
	int status, ends[2];
	pid_t child;

	check(pipe(ends) == 0);
	child = fork();
	check(child >= 0);
	if (!child) {
		const struct rlimit limit = { 20, 20 };

		dup2(ends[1], STDERR_FILENO);
		close(ends[0]);
		close(ends[1]);
		setrlimit(RLIMIT_CPU, &limit);
		if (debug)
			setenv("ONBEAT_DEBUG", "1", 1);
		program();
		_exit(0);
	}
	close(ends[1]);
	length = read(ends[0], text, sizeof(text) - 1);
	text[length < 0 ? 0 : length] = 0;
	close(ends[0]);
	check(waitpid(child, &status, 0) == child);
	if (words ? WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT && strstr(text, words) &&
			    (strstr(text, "hangs_nor_crashes.c:") || !strcmp(words, "timer"))
		  : status == 0 && !text[0])
		return;
	fprintf(stderr, "%s[%u]: status %x, wanted '%s', read: %s\n", table, i, status,
		words ? words : "", text);
	failed = 1;
}

int main(void)
{
	/* The portable form cannot know that a block's function has been left. */
	const char *form = getenv("ONBEAT_FORM");

	for (unsigned i = 0; i < COUNT(answered); i++)
		run("answered", i, answered[i], 1, NULL);
	for (unsigned i = 0; i < COUNT(ended); i++)
		run("ended", i, ended[i].program, 1, ended[i].words);
	for (unsigned i = 0; i < COUNT(misused); i++) {
		if (form && !strcmp(form, "posix") && misused[i].program == jumps_out_of_a_function)
			continue;
		run("misused", i, misused[i].program, 1, misused[i].words);
#ifndef ONBEAT_DEBUG
		run("misused", i, misused[i].program, 0, NULL);
#endif
	}
	return failed;
}
