/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A million blocks in four threads, with random nesting, throws, protections and expiries: each
 * violation is handled by the block it belongs to, each `finally` runs once, and nothing stays armed.
 *
 * A block is counted, entered and left without a gap (protected up to its first statement and from its
 * `finally` on), so the counts must agree exactly: each block that was entered ran its `finally` once,
 * and each that was left early was so by its own violation, a throw of its own, or one from further out.
 */
#include <onbeat/within.h>

#include <pthread.h>
#include <string.h>

#include "check.h"

#define THREADS 4

struct account {
	long blocks, ended, violated, thrown, finallys;
	uint64_t random;
};

static ONBEAT_DEFINE_EXCEPTION(given_up, onbeat_exception);

static unsigned draw(struct account *account, unsigned below)
{
	account->random ^= account->random << 13;
	account->random ^= account->random >> 7;
	account->random ^= account->random << 17;
	return (unsigned)(account->random % below);
}

static void one_block(struct account *account, int depth);

static void body(struct account *account, int depth)
{
	unsigned what = draw(account, 100);

	if (what < 40 && depth < 6) {
		for (int i = (int)draw(account, 3); i >= 0; i--)
			one_block(account, depth + 1);
	} else if (what < 55) {
		onbeat_within_disable();
		compute_ns((int64_t)draw(account, 4000));
		onbeat_within_enable();
	} else if (what < 65) {
		onbeat_throw(given_up);
	} else if (what < 90) {
		compute_ns((int64_t)draw(account, 8000));
	}
}

static void one_block(struct account *account, int depth)
{
	volatile int64_t expires_ns;
	volatile int ended = 0;

	onbeat_within_disable();
	account->blocks++;
	expires_ns = now_ns() + (draw(account, 4) ? (int64_t)draw(account, 60000) : ONBEAT_S(100));
	onbeat_try_within_abs (expires_ns) {
		onbeat_within_enable();
		body(account, depth);
		onbeat_within_disable();
		ended = 1;
	}
	onbeat_finally {
		account->finallys++;
	}
	onbeat_handle
		onbeat_when (onbeat_deadline_violation) {
			check(now_ns() >= expires_ns);
			check(onbeat_delay() >= 0);
			account->violated++;
		}
		onbeat_when (given_up) {
			check(!ended);
			account->thrown++;
		}
	onbeat_end;
	if (ended)
		account->ended++;
	onbeat_within_enable();
}

static long blocks_wanted = 250000;

static void *run(void *argument)
{
	struct account *account = argument;

	while (account->blocks < blocks_wanted) {
		one_block(account, 1);
		check(onbeat_remaining() == ONBEAT_FOREVER);
	}
	return NULL;
}

int main(void)
{
	const char *wanted = getenv("ONBEAT_STORM");
	struct account accounts[THREADS];
	struct account sum = { 0 };
	pthread_t threads[THREADS];

	if (wanted)
		blocks_wanted = strtol(wanted, NULL, 10) / THREADS;
	memset(accounts, 0, sizeof(accounts));
	for (int i = 0; i < THREADS; i++) {
		accounts[i].random = 88172645463325252u + (uint64_t)i * 7919;
		check(pthread_create(&threads[i], NULL, run, &accounts[i]) == 0);
	}
	for (int i = 0; i < THREADS; i++) {
		check(pthread_join(threads[i], NULL) == 0);
		check(accounts[i].finallys == accounts[i].blocks);
		sum.blocks += accounts[i].blocks;
		sum.ended += accounts[i].ended;
		sum.violated += accounts[i].violated;
		sum.thrown += accounts[i].thrown;
	}
	printf("%ld blocks: %ld ended, %ld violated, %ld thrown out of\n", sum.blocks, sum.ended, sum.violated,
	       sum.thrown);
	check(sum.violated > 0 && sum.thrown > 0 && sum.ended > 0);
	return 0;
}
