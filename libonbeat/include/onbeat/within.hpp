/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Timing constraints as exceptions, for C++: blocks that end at check points, by C++ exceptions, so
 * that destructors run. Nothing is linked, and no signal is used.
 *
 *     onbeat::try_within(
 *             onbeat::relative(12ms),
 *             [&] {
 *                     for (auto &slice : slices) {
 *                             picture.decode(slice);
 *                             onbeat::check();
 *                     }
 *             },
 *             [&](const onbeat::violation &late) { picture = previous; });
 *
 * Exceptions of the program's own are C++'s, and so is the hierarchy of their types. A body ends by
 * return, too. MUST NOT: suspend a coroutine in a body, which may go on in another thread.
 */
#ifndef ONBEAT_WITHIN_HPP
#define ONBEAT_WITHIN_HPP

#include <algorithm>
#include <chrono>
#include <exception>
#include <optional>
#include <utility>

#include <time.h>

namespace onbeat
{

using nanoseconds = std::chrono::nanoseconds;

/* By when a block must end, or how much CPU time of its thread it may take. */
class limit
{
      public:
	limit(clockid_t clock, nanoseconds expires) : clock_(clock), expires_(expires)
	{
	}

	/* The time until then; negative once it has passed. */
	nanoseconds remaining() const
	{
		return expires_ - now(clock_);
	}
	bool is_of_execution_time() const
	{
		return clock_ == CLOCK_THREAD_CPUTIME_ID;
	}

	static nanoseconds now(clockid_t clock)
	{
		timespec time;

		clock_gettime(clock, &time);
		return std::chrono::seconds(time.tv_sec) + nanoseconds(time.tv_nsec);
	}

	/* So long from now; the longest time that there is, if that is more. */
	static limit after(clockid_t clock, nanoseconds span)
	{
		const nanoseconds start = now(clock);

		return { clock,
			 span > nanoseconds::max() - start ? nanoseconds::max() : start + span };
	}

      private:
	clockid_t clock_;
	nanoseconds expires_;
};

/* When CLOCK_MONOTONIC reads this. */
inline limit absolute(nanoseconds time)
{
	return { CLOCK_MONOTONIC, time };
}

inline limit relative(nanoseconds span)
{
	return limit::after(CLOCK_MONOTONIC, span);
}

/* Of this thread's CPU time. */
inline limit execution_time(nanoseconds span)
{
	return limit::after(CLOCK_THREAD_CPUTIME_ID, span);
}

class block;

/* What a check throws. It belongs to one block, and passes all handlers inside that. */
class violation : public std::exception
{
      public:
	violation(const block *of, nanoseconds delay) : of_(of), delay_(delay)
	{
	}

	/* How late it was noticed. */
	nanoseconds delay() const
	{
		return delay_;
	}
	bool is_of(const block &block) const
	{
		return of_ == &block;
	}

      private:
	const block *of_;
	nanoseconds delay_;
};

class deadline_violation : public violation
{
	using violation::violation;

      public:
	const char *what() const noexcept override
	{
		return "a deadline has passed";
	}
};

class wcet_violation : public violation
{
	using violation::violation;

      public:
	const char *what() const noexcept override
	{
		return "too much CPU time was used";
	}
};

/* A limit that holds while it lives. try_within makes it; by hand, it is to be an automatic one. */
class block
{
      public:
	explicit block(limit limit) : limit_(limit), around_(innermost())
	{
		innermost() = this;
	}
	~block()
	{
		innermost() = around_;
	}
	block(const block &) = delete;
	block &operator=(const block &) = delete;

	/* Throws if it has expired. */
	void check() const
	{
		const nanoseconds left = limit_.remaining();

		if (left > nanoseconds(0))
			return;
		if (limit_.is_of_execution_time())
			throw wcet_violation(this, -left);
		throw deadline_violation(this, -left);
	}

	/* From the outermost one on, which catches if several have expired. */
	static void check_from(const block *block)
	{
		if (!block)
			return;
		check_from(block->around_);
		block->check();
	}

	/* The least that any of them has left, of those that limit execution time or not. */
	static nanoseconds least(bool of_execution_time)
	{
		nanoseconds least = nanoseconds::max();

		for (const block *it = innermost(); it; it = it->around_)
			if (it->limit_.is_of_execution_time() == of_execution_time)
				least = std::min(least, it->limit_.remaining());
		return least;
	}

	static const block *&innermost()
	{
		static thread_local const block *innermost = nullptr;

		return innermost;
	}

      private:
	limit limit_;
	const block *around_;
};

/* Throws if a block that this thread is in has expired. Reads a clock for each block. */
inline void check()
{
	block::check_from(block::innermost());
}

/* The time to the earliest deadline, and the least execution time left; max() if there is none. */
inline nanoseconds remaining()
{
	return block::least(false);
}

inline nanoseconds remaining_wcet()
{
	return block::least(true);
}

/*
 * Runs `body`, and `handler` with the violation if the limit passes before it ends. All destructors
 * of the body run before the handler. True if the body was in time.
 */
template <class Body, class Handler> bool try_within(limit limit, Body &&body, Handler &&handler)
{
	std::optional<deadline_violation> late;
	std::optional<wcet_violation> overrun;
	{
		block here(limit);

		try {
			std::forward<Body>(body)();
			here.check();
		} catch (const deadline_violation &caught) {
			if (!caught.is_of(here))
				throw;
			late = caught;
		} catch (const wcet_violation &caught) {
			if (!caught.is_of(here))
				throw;
			overrun = caught;
		}
	}
	if (late)
		handler(static_cast<const violation &>(*late));
	if (overrun)
		handler(static_cast<const violation &>(*overrun));
	return !late && !overrun;
}

} // namespace onbeat

#endif
