/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A million blocks in four threads, with random constraints, nesting, throws, protections and
 * expiries: each violation is handled by the block it belongs to, each `finally` runs once, nothing
 * stays armed or open. ONBEAT_STORM says how many blocks.
 *
 * A block is counted, entered and left without a gap (protected up to its first statement and from
 * its `finally` on), so that the accounts must agree exactly. A block is left by its end, by its
 * own violation, by a throw that is meant for it, or because a block around it was left; the last
 * kind is counted by the block around it, and so adds up only if every block's `finally` ran before
 * the handler further out.
 */
#include <onbeat/within.h>

#include <dirent.h>

#include "check.h"

#define THREADS 4
#define DEEPEST 6

struct account {
	long blocks, ended, violated, thrown, taken_along, finallys;
	long open; /* `finally` has run, and what left the block is not known yet */
	int depth;
	unsigned random;
};

static ONBEAT_DEFINE_EXCEPTION(given_up, onbeat_exception);
/* Its value is the depth of the block that it is meant for. */
static ONBEAT_DEFINE_EXCEPTION(given_up_further_out, onbeat_exception);

static int draw(struct account *account, int below)
{
	return rand_r(&account->random) % below;
}

static void one_block(struct account *account, int depth);

static void body(struct account *account, int depth)
{
	const int what = draw(account, 100);

	if (what < 40 && depth < DEEPEST) {
		for (int i = draw(account, 3); i >= 0; i--)
			one_block(account, depth + 1);
	} else if (what < 55) {
		onbeat_within_disable();
		compute_ns(draw(account, 4000));
		onbeat_within_enable();
	} else if (what < 62) {
		onbeat_throw(given_up);
	} else if (what < 68) {
		onbeat_throw_value(given_up_further_out, (void *)(intptr_t)(1 + draw(account, depth)));
	} else if (what < 90) {
		compute_ns(draw(account, 8000));
	}
}

/* A block was left, and this is how; those inside it that had not ended were taken along. */
static void settle(struct account *account, int depth, long open_before, long *kind)
{
	check(account->open > open_before);
	check(account->depth == depth - 1);
	(*kind)++;
	account->taken_along += account->open - open_before - 1;
	account->open = open_before;
}

/*
 * The parts that are the same for each kind of constraint; `expired` is asked when the block says
 * it was violated.
 */
#define BLOCK(try_word, expired)                                                             \
	try_word {                                                                           \
		onbeat_within_enable();                                                      \
		body(account, depth);                                                        \
		onbeat_within_disable();                                                     \
		ended = 1;                                                                   \
	}                                                                                    \
	onbeat_finally {                                                                     \
		account->finallys++;                                                         \
		account->open++;                                                             \
		check(account->depth-- == depth);                                            \
	}                                                                                    \
	onbeat_handle                                                                        \
		onbeat_when (onbeat_timing_constraint_violation) {                           \
			check(expired);                                                      \
			check(onbeat_delay() >= 0);                                          \
			settle(account, depth, open_before, &account->violated);             \
			handled = 1;                                                         \
		}                                                                            \
		onbeat_when (given_up) {                                                     \
			check(!ended);                                                       \
			settle(account, depth, open_before, &account->thrown);               \
			handled = 1;                                                         \
		}                                                                            \
		onbeat_when (given_up_further_out) {                                         \
			check(!ended && (intptr_t)onbeat_caught()->value <= depth);          \
			if ((intptr_t)onbeat_caught()->value < depth)                        \
				onbeat_rethrow();                                            \
			settle(account, depth, open_before, &account->thrown);               \
			handled = 1;                                                         \
		}                                                                            \
	onbeat_end;                                                                          \
	if (!handled) {                                                                      \
		check(ended);                                                                \
		settle(account, depth, open_before, &account->ended);                        \
	}

static void one_block(struct account *account, int depth)
{
	const int64_t limit_ns = draw(account, 4) ? draw(account, 60000) : ONBEAT_S(100);
	const int kind = draw(account, 10);
	const long open_before = account->open;
	volatile int64_t wall_ns, cpu_ns;
	volatile int ended = 0, handled = 0;

	onbeat_within_disable();
	account->blocks++;
	check(++account->depth == depth);
	wall_ns = now_ns() + limit_ns;
	cpu_ns = cpu_now_ns() + limit_ns;
	if (kind < 3) {
		BLOCK(onbeat_try_within_abs (wall_ns), now_ns() >= wall_ns)
	} else if (kind < 6) {
		BLOCK(onbeat_try_within_rel (limit_ns), now_ns() >= wall_ns)
	} else if (kind < 9) {
		BLOCK(onbeat_try_within_wcet (limit_ns), cpu_now_ns() >= cpu_ns)
	} else {
		BLOCK(onbeat_try, 0)
	}
	onbeat_within_enable();
}

static long blocks_wanted = 250000;

static void *run(void *argument)
{
	struct account *account = argument;

	while (account->blocks < blocks_wanted) {
		one_block(account, 1);
		check(account->open == 0 && account->depth == 0);
		check(onbeat_remaining() == ONBEAT_FOREVER && onbeat_remaining_wcet() == ONBEAT_FOREVER);
	}
	return NULL;
}

static int open_descriptors(void)
{
	DIR *folder = opendir("/proc/self/fd");
	int count = 0;

	check(folder);
	while (readdir(folder))
		count++;
	closedir(folder);
	return count;
}

int main(void)
{
	const char *wanted = getenv("ONBEAT_STORM");
	int descriptors = open_descriptors();
	struct account accounts[THREADS] = { 0 }, sum = { 0 };
	pthread_t threads[THREADS];

	if (wanted)
		blocks_wanted = strtol(wanted, NULL, 10) / THREADS;
	for (int i = 0; i < THREADS; i++) {
		accounts[i].random = (unsigned)i + 1;
		check(pthread_create(&threads[i], NULL, run, &accounts[i]) == 0);
	}
	for (int i = 0; i < THREADS; i++) {
		const struct account *one = &accounts[i];

		check(pthread_join(threads[i], NULL) == 0);
		check(one->finallys == one->blocks);
		check(one->blocks == one->ended + one->violated + one->thrown + one->taken_along);
		sum.blocks += one->blocks;
		sum.ended += one->ended;
		sum.violated += one->violated;
		sum.thrown += one->thrown;
		sum.taken_along += one->taken_along;
	}
	printf("%ld blocks: %ld ended, %ld violated, %ld thrown out of, %ld taken along by one around them\n",
	       sum.blocks, sum.ended, sum.violated, sum.thrown, sum.taken_along);
	/* In a shorter one, not everything has to happen. */
	check(sum.blocks < 100000 || (sum.violated > 0 && sum.thrown > 0 && sum.ended > 0 && sum.taken_along > 0));
	check(open_descriptors() == descriptors);
	return 0;
}
