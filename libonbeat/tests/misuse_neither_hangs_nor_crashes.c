/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Thirty wrong programs. Each either does no harm and is answered, or, with ONBEAT_DEBUG in the
 * environment, is ended with the reason and its place in the source, and without goes on; none
 * hangs, crashes or loses a violation.
 */
#include <onbeat/job.h>
#include <onbeat/mdn.h>
#include <onbeat/reserve.h>
#include <onbeat/within.h>

#include <limits.h>
#include <setjmp.h>
#include <sys/resource.h>

#include "check.h"

static jmp_buf outside;

/* A checked block that checks for ever, after `misuse`: its violation has to end it. */
static void expire_after(void (*misuse)(void))
{
	check_left_by(onbeat_deadline_violation, onbeat_try_checked_rel (ONBEAT_MS(2)), misuse(); for (;;) onbeat_check());
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

static void blocks_all_signals(void)
{
	block_all_signals();
	expire_after(nothing);
	block_all_signals();
	expire_after(nothing);
	expire_after(block_all_signals);
}

static volatile int signals;

static void count_signal(int number)
{
	(void)number;
	signals++;
}

static void handles_signals_of_its_own(void)
{
	for (int number = SIGRTMIN + 5; number < SIGRTMIN + 9; number++)
		check(signal(number, count_signal) != SIG_ERR);
	for (int i = 0; i < 5; i++)
		expire_after(nothing);
	check(signals == 0);
	for (int number = SIGRTMIN + 5; number < SIGRTMIN + 9; number++)
		check(raise(number) == 0);
	check(signals == 4);
}

static int64_t limit_that_throws(void)
{
	onbeat_throw(onbeat_exception);
}

static void block_whose_limit_throws(void)
{
	onbeat_try_within_rel (limit_that_throws()) {
		check(0);
	}
	onbeat_handle
		onbeat_when (onbeat_exception) {
			check(0);
		}
	onbeat_end;
}

static void throws_in_its_limit(void)
{
	check_left_by(onbeat_exception, onbeat_try, block_whose_limit_throws());
}

static void disables_for_ever(void)
{
	check_left_by(onbeat_deadline_violation, onbeat_try_checked_rel (ONBEAT_MS(2)), onbeat_within_disable();
		      compute_ns(ONBEAT_MS(4)));
}

static void *check_elsewhere(void *unused)
{
	compute_ns(ONBEAT_MS(5));
	checks_outside();
	return unused;
}

static void check_in_a_thread(void)
{
	in_a_thread(check_elsewhere);
}

static void checks_for_another_thread(void)
{
	expire_after(check_in_a_thread);
}

static void check_in_handler(int number)
{
	(void)number;
	onbeat_check();
}

static void raise_past_the_deadline(void)
{
	signal(SIGALRM, check_in_handler);
	compute_ns(ONBEAT_MS(4));
	raise(SIGALRM);
}

static void checks_in_a_signal_handler(void)
{
	expire_after(raise_past_the_deadline);
}

static struct onbeat_reservation *no_reservation(int64_t runtime_ns, int64_t deadline_ns, int64_t period_ns)
{
	struct onbeat_reservation *none = (void *)&outside;

	check(onbeat_reservation_create(&none, runtime_ns, deadline_ns, period_ns) == -EINVAL && !none);
	return none;
}

static struct onbeat_reservation *a_reservation(int64_t ns)
{
	struct onbeat_reservation *made;

	check(onbeat_reservation_create(&made, ns, ns, ns) == 0);
	return made;
}

static void reserves_nonsense(void)
{
	struct onbeat_reservation *it = (void *)&outside;

	check(onbeat_reservation_reason());
	check(onbeat_keep_audio_thread(&it, 480, 0, 1) == -EINVAL && !it);
	check(onbeat_keep_audio_thread(&it, 480, 48000, 10000001) == -EINVAL && !it);
	no_reservation(0, 1, 1);
	no_reservation(-1, -1, -1);
	no_reservation(2, 1, 3);
	no_reservation(1, 3, 2);
	no_reservation(INT64_MIN, INT64_MAX, INT64_MAX);
	onbeat_reservation_destroy(no_reservation(0, 0, 0));
	/* Refused by the kernel, or before. */
	it = a_reservation(INT64_MAX);
	check(onbeat_reservation_attach(it, 0) < 0 && *onbeat_reservation_reason());
	onbeat_reservation_destroy(it);
}

static void attaches_what_is_not_there_and_changes_to_nonsense(void)
{
	struct onbeat_reservation *it = a_reservation(ONBEAT_MS(1));
	static const pid_t none[] = { -1, INT_MIN, INT_MAX, 1 };
	struct onbeat_reservation_state state;

	for (unsigned i = 0; i < sizeof(none) / sizeof(*none); i++) {
		check(onbeat_reservation_attach(it, none[i]) == -ESRCH);
		check(onbeat_reservation_detach(it, none[i]) == -ENOENT);
		check(onbeat_reservation_attach_process(it, none[i]) < 0);
		check(onbeat_reservation_detach_process(it, none[i]) == -ENOENT);
	}
	check(onbeat_reservation_change(it, 2, 1, 1) == -EINVAL);
	check(onbeat_reservation_set_hard(it, -7) == 0);
	check(onbeat_reservation_query(it, &state) == 0);
	check(state.period_ns == ONBEAT_MS(1) && state.threads == 0 && state.consumed_ns == 0);
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

/* A checked block that does `how`, twice. */
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
	}

LEAVES(returns, return)
LEAVES(breaks, break)
LEAVES(continues, continue)
LEAVES(jumps, if (i++ < 3) longjmp(outside, 1))
LEAVES(throws_what_nobody_takes, onbeat_throw_value(onbeat_exception, NULL))
LEAVES(rethrows_what_was_not_caught, onbeat_rethrow())

/* A block with a `finally` and a handler, of which one does `how`. */
#define LEAVES_LATER(name, in_body, in_finally, in_handler) \
	static void name(void)                             \
	{                                                  \
		onbeat_try {                               \
			in_body;                           \
			onbeat_throw(onbeat_exception);    \
		}                                          \
		onbeat_finally {                           \
			in_finally;                        \
		}                                          \
		onbeat_handle                              \
			onbeat_when (onbeat_exception) {   \
				in_handler;                \
			}                                  \
		onbeat_end;                                \
		return;                                    \
out:                                                       \
		return;                                    \
	}

LEAVES_LATER(goes_out, onbeat_within_disable(); goto out, , )
LEAVES_LATER(continues_in_finally, , continue, goto out)
LEAVES_LATER(goes_out_of_finally, , goto out, )
LEAVES_LATER(continues_in_a_handler, , , if (0) goto out; continue)
LEAVES_LATER(returns_in_a_handler, , , if (0) goto out; return)

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

/* Seen at the next block that this function enters. */
static void jumps_out_of_a_function(void)
{
	if (!setjmp(outside))
		jump_out();
	onbeat_try {
	}
	onbeat_handle
	onbeat_end;
}

static void enable(void)
{
	onbeat_within_enable();
}

static void enables_too_often(void)
{
	expire_after(enable);
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

static void has_no_timers(void)
{
	const struct rlimit none = { 0, 0 };

	check(setrlimit(RLIMIT_SIGPENDING, &none) == 0);
	check(onbeat_within_prepare() < 0);
}

static const struct misuse {
	void (*program)(void);
	enum { ANSWERED, ENDED, ENDED_IF_DEBUGGED } how;
	const char *words;
} misuses[] = {
	{ checks_outside, ANSWERED, NULL },
	{ blocks_all_signals, ANSWERED, NULL },
	{ handles_signals_of_its_own, ANSWERED, NULL },
	{ throws_in_its_limit, ANSWERED, NULL },
	{ disables_for_ever, ANSWERED, NULL },
	{ checks_for_another_thread, ANSWERED, NULL },
	{ checks_in_a_signal_handler, ANSWERED, NULL },
	{ reserves_nonsense, ANSWERED, NULL },
	{ attaches_what_is_not_there_and_changes_to_nonsense, ANSWERED, NULL },
	{ ignores_that_create_failed, ANSWERED, NULL },
	{ marks_without_order, ANSWERED, NULL },
	{ marks_without_descriptors, ANSWERED, NULL },
	{ throws_what_nobody_takes, ENDED, "no block handles it" },
	{ rethrows_what_was_not_caught, ENDED, "rethrow" },
	{ nests_too_deep, ENDED, "nested deeper than" },
	{ has_no_timers, ENDED, "timer" },
	{ returns, ENDED_IF_DEBUGGED, "left by return" },
	{ breaks, ENDED_IF_DEBUGGED, "left by return, goto or break" },
	{ continues, ENDED_IF_DEBUGGED, "left by continue" },
	{ jumps, ENDED_IF_DEBUGGED, "left by longjmp" },
	{ goes_out, ENDED_IF_DEBUGGED, "left by return, goto or break" },
	{ continues_in_finally, ENDED_IF_DEBUGGED, "left by continue" },
	{ continues_in_a_handler, ENDED_IF_DEBUGGED, "left by continue" },
	{ goes_out_of_finally, ENDED_IF_DEBUGGED, "left by return, goto or break" },
	{ returns_in_a_handler, ENDED_IF_DEBUGGED, "left by return, goto or break" },
	{ jumps_out_of_an_inner_block, ENDED_IF_DEBUGGED, "left by longjmp" },
	{ jumps_out_of_a_function, ENDED_IF_DEBUGGED, "left by longjmp" },
	{ enables_too_often, ENDED_IF_DEBUGGED, "without onbeat_within_disable" },
};

/* In a child, which then has a block. It is to end with these words; by itself if NULL. */
static bool ends(void (*program)(void), bool debugs, const char *words)
{
	int status, pipes[2];
	char text[1024];
	pid_t child;
	FILE *out;

	check(pipe(pipes) == 0);
	child = fork();
	check(child >= 0);
	if (!child) {
		const struct rlimit limit = { 20, 20 };

		dup2(pipes[1], STDERR_FILENO);
		close(pipes[0]);
		close(pipes[1]);
		setrlimit(RLIMIT_CPU, &limit);
		if (debugs)
			setenv("ONBEAT_DEBUG", "1", 1);
		program();
		expire_after(nothing);
		_exit(0);
	}
	close(pipes[1]);
	/* To its end, because musl writes in pieces. */
	out = fdopen(pipes[0], "r");
	check(out);
	text[fread(text, 1, sizeof(text) - 1, out)] = 0;
	fclose(out);
	check(waitpid(child, &status, 0) == child);
	if (words ? WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT && strstr(text, words) &&
			    (strstr(text, "hangs_nor_crashes.c:") || !strcmp(words, "timer"))
		  : status == 0 && !text[0])
		return true;
	fprintf(stderr, "status %x, wanted '%s', read: %s\n", status, words ? words : "", text);
	return false;
}

int main(void)
{
	const char *form = getenv("ONBEAT_FORM");
	bool failed = false;

	for (unsigned i = 0; i < sizeof(misuses) / sizeof(*misuses); i++) {
		const struct misuse *misuse = &misuses[i];
		bool is_as_wanted;

		/* The portable form cannot know that a block's function has been left. */
		if (form && !strcmp(form, "posix") && misuse->program == jumps_out_of_a_function)
			continue;
		is_as_wanted = ends(misuse->program, true, misuse->words);
#ifndef ONBEAT_DEBUG
		if (misuse->how == ENDED_IF_DEBUGGED)
			is_as_wanted &= ends(misuse->program, false, NULL);
#endif
		if (!is_as_wanted) {
			fprintf(stderr, "misuses[%u] did that\n", i);
			failed = true;
		}
	}
	return failed;
}
