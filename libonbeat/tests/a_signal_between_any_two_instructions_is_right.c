/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Two nested blocks are entered and left, and the signal of an expiry is delivered after each
 * single instruction of that: whichever it is, the block whose constraint expired handles it, each
 * `finally` runs once, nothing is lost and nothing stays armed. Then the same with a second signal
 * after each instruction from the first one's handler on.
 *
 * ONBEAT_STEPS=N tries every Nth instruction only. Time is virtual (virtual_time.h), so nothing
 * depends on how fast the machine is.
 */
#include <onbeat/within.h>

#include <stdio.h>

#include "check.h"

#ifndef __x86_64__
int main(void)
{
	puts("single steps are taken by the trap flag of x86-64");
	return SKIPPED;
}
#else

/* The blocks' expiries, clock readings past one of them or both, and what is long past any. */
#define SOONER_NS 1000
#define PAST_SOONER_NS 2000
#define LATER_NS 3000
#define PAST_BOTH_NS 4000
#define LONG_PAST_NS 100000

/* Where the code has got to. */
enum place { BEFORE, OUTER, INNER, SHIELD, SHIELD_END, INNER_AGAIN, INNER_DONE, OUTER_AGAIN, OUTER_DONE, PLACES };

/* A run's record of itself. */
struct test_state {
	enum place at, at_injection;
	int reached[PLACES];
	int inner_finally, outer_finally;
	int inner_violated, outer_violated, thrown;
	int64_t inner_delay_ns, outer_delay_ns;
};

#include "virtual_time.h"

enum body { PLAIN, THROWS, SHIELDS, BODIES };

struct scenario {
	int outer_wcet, inner_wcet;
	int64_t outer_ns, inner_ns;
	enum body body;
	int ends_late; /* the outer block expires before its end, whatever was injected */
	enum place first_at; /* where the clocks move by themselves, before every instruction from there on is tried */
	struct readings first;
};

static volatile struct test_state *const seen = &test_state;
static const struct scenario *scenario;
static long tries;
static ONBEAT_DEFINE_EXCEPTION(gave_up, onbeat_exception);

static void reach(enum place place)
{
	seen->at = place;
	seen->reached[place] = 1;
	if (place == scenario->first_at)
		move_clocks(&scenario->first);
}

static void injected(void)
{
	seen->at_injection = seen->at;
	tries++;
}

static void inner_body(void)
{
	reach(INNER);
	if (scenario->body == THROWS)
		onbeat_throw(gave_up);
	if (scenario->body == SHIELDS) {
		onbeat_within_disable();
		reach(SHIELD);
		reach(SHIELD_END);
		onbeat_within_enable();
	}
	reach(INNER_AGAIN);
}

#define BLOCK_WITHIN(constrained, who, body)                                                     \
	constrained (scenario->who##_ns) {                                                       \
		body();                                                                          \
	}                                                                                        \
	onbeat_finally {                                                                         \
		seen->who##_finally++;                                                           \
	}                                                                                        \
	onbeat_handle                                                                            \
		onbeat_when (onbeat_timing_constraint_violation) {                               \
			seen->who##_violated++;                                                  \
			seen->who##_delay_ns = onbeat_delay();                                   \
		}                                                                                \
		onbeat_when (gave_up) {                                                          \
			seen->thrown++;                                                          \
		}                                                                                \
	onbeat_end

#define BLOCK(who, body)                                                                         \
	if (scenario->who##_wcet)                                                                \
		BLOCK_WITHIN(onbeat_try_within_wcet, who, body);                                 \
	else                                                                                     \
		BLOCK_WITHIN(onbeat_try_within_abs, who, body)

static void outer_body(void)
{
	static const struct readings long_past = { { LONG_PAST_NS, LONG_PAST_NS } };

	reach(OUTER);
	BLOCK(inner, inner_body);
	reach(INNER_DONE);
	if (scenario->ends_late)
		move_clocks(&long_past);
	reach(OUTER_AGAIN);
}

/*
 * The blocks, with the clocks moved after each instruction, or from the first signal's handler on.
 */
static void run(const struct readings *to, void (*verdict)(const struct readings *))
{
	memset(&test_state, 0, sizeof(test_state));
	clock_ns[WALL] = clock_ns[CPU] = 0;
	if (scenario->first_at)
		in_next_handler = to;
	else
		step(to);
	BLOCK(outer, outer_body);
	reach(OUTER_DONE);
	if (mode == TRYING)
		verdict(to);
	program_ended();
}

/* Keeps the run's frame, and what it calls, below an address that is known. */
__attribute__((noinline)) static void try_all(const struct readings *to,
					      void (*verdict)(const struct readings *))
{
	char base[64];

	stack_base = base;
	run(to, verdict);
	check(!in_next_handler);
}

/* Holds after any number of signals at any place. */
static void check_always(int outer_past, int inner_past)
{
	check(seen->outer_finally == 1);
	check(seen->inner_finally <= 1 && seen->inner_finally >= seen->reached[INNER]);
	check(seen->inner_violated + seen->thrown <= 1 && seen->outer_violated <= 1);
	check(!seen->inner_violated || inner_past);
	check(!seen->outer_violated || outer_past || scenario->ends_late);
	check(seen->reached[SHIELD] == seen->reached[SHIELD_END]);
	check(!seen->outer_violated || seen->inner_finally >= seen->reached[INNER]);
	if (scenario->ends_late)
		check(seen->outer_violated && !seen->reached[OUTER_AGAIN]);
	else if (!seen->outer_violated)
		check(seen->reached[OUTER_AGAIN]);
	if (scenario->body == THROWS && !seen->outer_violated)
		check(seen->inner_violated + seen->thrown == 1);
}

/* A later block is violated as ever: nothing was left protected, critical or pending. */
static void check_nothing_is_left(void)
{
	check(onbeat_remaining() == ONBEAT_FOREVER && onbeat_remaining_wcet() == ONBEAT_FOREVER);
	check(armed_ns[WALL] == NEVER && armed_ns[CPU] == NEVER && armed_ns[PERF] == NEVER);
	check_left_by(onbeat_deadline_violation, onbeat_try_within_rel (100),
		      move_clocks(&(struct readings){ { clock_ns[WALL] + 100, 0 } }); check(0));
}

static int64_t late_ns(int64_t expires_ns, int wcet, const struct readings *to)
{
	return to->ns[wcet ? CPU : WALL] - expires_ns;
}

/* Holds after one signal, after one instruction. */
static void check_one(const struct readings *to)
{
	int64_t outer_late_ns = late_ns(scenario->outer_ns, scenario->outer_wcet, to);
	int64_t inner_late_ns = late_ns(scenario->inner_ns, scenario->inner_wcet, to);
	/* An execution-time limit that is not set yet counts from after the injection. */
	int outer_is_set = !scenario->outer_wcet || seen->at_injection >= OUTER;
	int inner_is_set = !scenario->inner_wcet || seen->at_injection >= INNER;

	check_always(outer_late_ns >= 0, inner_late_ns >= 0);
	check(!seen->inner_violated || outer_late_ns < 0 || !outer_is_set);
	if (outer_late_ns >= 0 && outer_is_set && seen->at_injection <= INNER_DONE) {
		check(seen->outer_violated && !seen->reached[OUTER_AGAIN]);
		check(seen->outer_delay_ns == outer_late_ns || scenario->ends_late);
	}
	if (outer_late_ns < 0 && inner_late_ns >= 0 && inner_is_set && seen->at_injection < INNER_AGAIN) {
		check(seen->inner_violated || (seen->thrown && seen->at_injection == INNER));
		check(!seen->reached[INNER_AGAIN]);
		check(!seen->inner_violated || seen->inner_delay_ns == inner_late_ns);
	}
	check_nothing_is_left();
}

static void check_two(const struct readings *to)
{
	check_always(late_ns(scenario->outer_ns, scenario->outer_wcet, to) >= 0,
		     late_ns(scenario->inner_ns, scenario->inner_wcet, to) >= 0);
	check_nothing_is_left();
}

/*
 * Each pair of kinds, each order of expiries, each body, and each way to pass what can be passed.
 */
static void single_signals(void)
{
	static const int64_t orders[][2] = { { SOONER_NS, LATER_NS }, { LATER_NS, SOONER_NS }, { SOONER_NS, SOONER_NS } };
	static const int64_t readings[] = { SOONER_NS - PERF_EARLY_NS / 2, PAST_SOONER_NS, PAST_BOTH_NS };
	static struct scenario one;

	scenario = &one;
	for (int i = 0; i < 2 * 2 * 2 * BODIES * 3; i++) {
		one.outer_wcet = i & 1;
		one.inner_wcet = i >> 1 & 1;
		one.ends_late = i >> 2 & 1;
		one.body = (enum body)((i >> 3) % BODIES);
		one.outer_ns = orders[(i >> 3) / BODIES][0];
		one.inner_ns = orders[(i >> 3) / BODIES][1];
		/* Only perf's clock can be early. */
		for (size_t r = perf_is_there ? 0 : 1; r < sizeof(readings) / sizeof(readings[0]); r++) {
			for (int clocks = 1; clocks <= 3; clocks++) {
				if (one.outer_wcet == one.inner_wcet && clocks != (one.outer_wcet ? 2 : 1))
					continue;
				struct readings to = { { clocks & 1 ? readings[r] : 0, clocks & 2 ? readings[r] : 0 } };

				try_all(&to, check_one);
			}
		}
	}
}

static void second_signals(void)
{
	static const struct {
		struct scenario scenario;
		struct readings second;
	} pairs[] = {
		/* The inner deadline passes while perf's clock is early for the outer limit. */
		{ { 1, 0, LATER_NS, SOONER_NS, PLAIN, 1, INNER, { { 0, LATER_NS - PERF_EARLY_NS / 2 } } }, { { PAST_SOONER_NS, 0 } } },
		/* The outer deadline passes while the inner one's violation travels. */
		{ { 0, 0, LATER_NS, SOONER_NS, SHIELDS, 0, INNER, { { PAST_SOONER_NS, 0 } } }, { { PAST_BOTH_NS, 0 } } },
		{ { 0, 0, LATER_NS, SOONER_NS, SHIELDS, 0, OUTER, { { PAST_SOONER_NS, 0 } } }, { { PAST_BOTH_NS, 0 } } },
		/* The inner limit passes while the outer deadline's violation travels. */
		{ { 0, 1, SOONER_NS, SOONER_NS, SHIELDS, 0, INNER, { { PAST_SOONER_NS, 0 } } }, { { PAST_BOTH_NS, PAST_BOTH_NS } } },
		/* Both limits, the inner one first; both deadlines, while a throw is handled. */
		{ { 1, 1, LATER_NS, SOONER_NS, PLAIN, 1, INNER, { { 0, PAST_SOONER_NS } } }, { { 0, PAST_BOTH_NS } } },
		{ { 0, 0, LATER_NS, LATER_NS, THROWS, 0, INNER_DONE, { { PAST_BOTH_NS, 0 } } }, { { PAST_BOTH_NS, PAST_BOTH_NS } } },
	};

	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		scenario = &pairs[i].scenario;
		try_all(&pairs[i].second, check_two);
	}
}

/* In a thread of its own, for a thread's source of execution-time signals is chosen once. */
static void *with_either_source(void *unused)
{
	static const enum onbeat_wcet_source sources[] = { ONBEAT_WCET_CPU_TIMER, ONBEAT_WCET_USER_CLOCK, ONBEAT_WCET_PERF_CLOCK };

	catch_traps();
	check(onbeat_wcet_source() == sources[perf_is_there]);
	single_signals();
	printf("%ld instructions were followed by a signal, ", tries);
	second_signals();
	printf("%ld with those inside a notification\n", tries);
	return unused;
}

int main(void)
{
	const char *every = getenv("ONBEAT_STEPS");

	if (every && strtol(every, NULL, 10) > 0)
		steps_between = strtol(every, NULL, 10);
	for (perf_is_there = 0; perf_is_there < 3; perf_is_there++)
		in_a_thread(with_either_source);
	return 0;
}
#endif
