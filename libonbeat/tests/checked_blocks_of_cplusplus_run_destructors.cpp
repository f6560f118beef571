/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Checked blocks run destructors; in those of C, what a destructor would do stands in `finally`. */
#include <onbeat/within.h>
#include <onbeat/within.hpp>

#include <cassert>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

using namespace std::chrono_literals;

static int destroyed;

struct counted {
	~counted() { destroyed++; }
};

static void compute_until_checked()
{
	for (;;) {
		std::vector<int> memory(100);
		onbeat::check();
	}
}

static void blocks_of_c()
{
	/* Declared outside the block: destroyed as usual, whatever happens inside. */
	std::string text;
	volatile int handled = 0;

	onbeat_try_within_rel (ONBEAT_MS(2)) {
		onbeat_within_disable();
		text = "long enough to be allocated on the heap, safely, in a protected section";
		onbeat_within_enable();
		for (;;)
			;
	}
	onbeat_handle
		onbeat_when (onbeat_deadline_violation) {
			handled = 1;
		}
	onbeat_end;
	assert(handled && (text.size() > 40 || text.empty()));
}

int main()
{
	std::mutex mutex;
	int handled = 0;
	auto never = [](const onbeat::violation &) { assert(false); };

	blocks_of_c();
	onbeat::check();
	assert(onbeat::remaining() == onbeat::nanoseconds::max());
	bool in_time = onbeat::try_within(
		onbeat::relative(2ms),
		[&] {
			std::lock_guard<std::mutex> guard(mutex);
			counted one;

			assert(onbeat::remaining() <= 2ms);
			compute_until_checked();
		},
		[&](const onbeat::violation &late) {
			assert(dynamic_cast<const onbeat::deadline_violation *>(&late));
			assert(late.delay() >= 0ns && destroyed == 1);
			handled++;
		});
	assert(!in_time && handled == 1 && mutex.try_lock());
	assert(onbeat::try_within(onbeat::relative(60s), [] {}, never));
	assert(onbeat::try_within(onbeat::relative(onbeat::nanoseconds::max()), [] {}, never));

	/* The block that expired catches, past handlers inside it and past catch-alls that rethrow. */
	onbeat::try_within(
		onbeat::execution_time(3ms),
		[&] { onbeat::try_within(onbeat::relative(60s), compute_until_checked, never); },
		[&](const onbeat::violation &overrun) {
			assert(dynamic_cast<const onbeat::wcet_violation *>(&overrun));
			handled++;
		});
	/* Its end is a check. */
	onbeat::try_within(
		onbeat::absolute(0ns), [&] { handled++; }, [&](const onbeat::violation &) { handled++; });
	assert(handled == 4);

	/* A limit counts from the beginning of each block, in its own thread. */
	const onbeat::limit minute = onbeat::relative(60s), second = onbeat::execution_time(1s);
	for (int i = 0; i < 2; i++)
		assert(onbeat::try_within(
			minute, [] { assert(onbeat::remaining() > 0s && onbeat::remaining() <= 60s); }, never));
	std::thread([&] {
		onbeat::try_within(second, [] { assert(onbeat::remaining_wcet() <= 1s); }, never);
	}).join();

	/* A handler that logs and goes on does not take it; nor does a check in what it destroys. */
	struct checks {
		~checks() { onbeat::check(); }
	};
	onbeat::try_within(
		onbeat::relative(2ms),
		[&] {
			checks one;

			for (;;) {
				try {
					compute_until_checked();
				} catch (const std::exception &) {
					assert(false);
				}
			}
		},
		[&](const onbeat::violation &) { handled++; });
	assert(handled == 5);

	/* Exceptions of the program pass, and nothing of the block is left. */
	try {
		onbeat::try_within(
			onbeat::relative(60s), [] { throw std::runtime_error("own"); }, never);
		assert(false);
	} catch (const std::runtime_error &) {
	}
	assert(onbeat::remaining() == onbeat::nanoseconds::max());
	assert(onbeat::remaining_wcet() == onbeat::nanoseconds::max());
	return 0;
}
