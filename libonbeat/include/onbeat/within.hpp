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
 * return, too. A violation is no std::exception, for a handler of those inside a body, which logs
 * and goes on, is not meant.
 *
 * MUST NOT: suspend a coroutine in a body, which may go on in another thread; check in a destructor
 * or another noexcept function, which ends the program. (While an exception unwinds the body, a
 * check does nothing.) onbeat_check() of <onbeat/within.h> is for that one's blocks alone.
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

/* By when a block must end, or how much CPU time of its thread it may take, from its beginning. */
class limit
{
      public:
	limit(clockid_t clock, nanoseconds time, bool is_relative)
	    : clock_(clock), time_(time), is_relative_(is_relative)
	{
	}

	/* When a block that begins now expires; at the end of time, if that is earlier. */
	nanoseconds expires() const
	{
		const nanoseconds start = is_relative_ ? now() : nanoseconds(0);

		return time_ > nanoseconds::max() - start ? nanoseconds::max() : start + time_;
	}
	bool is_of_execution_time() const
	{
		return clock_ == CLOCK_THREAD_CPUTIME_ID;
	}
	nanoseconds now() const
	{
		timespec time;

		clock_gettime(clock_, &time);
		return std::chrono::seconds(time.tv_sec) + nanoseconds(time.tv_nsec);
	}

      private:
	clockid_t clock_;
	nanoseconds time_;
	bool is_relative_;
};

/* When CLOCK_MONOTONIC reads this. */
inline limit absolute(nanoseconds time)
{
	return { CLOCK_MONOTONIC, time, false };
}

inline limit relative(nanoseconds span)
{
	return { CLOCK_MONOTONIC, span, true };
}

/* Of this thread's CPU time. */
inline limit execution_time(nanoseconds span)
{
	return { CLOCK_THREAD_CPUTIME_ID, span, true };
}

class block;

/* What a check throws. It belongs to one block, and passes all handlers inside that. */
class violation
{
      public:
	violation(const block *of, nanoseconds delay) : of_(of), delay_(delay)
	{
	}
	virtual ~violation() = default;

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
};

class wcet_violation : public violation
{
	using violation::violation;
};

/* A limit that holds while it lives. try_within makes it; by hand, it is to be an automatic one. */
class block
{
      public:
	explicit block(limit limit)
	    : limit_(limit), expires_(limit.expires()), around_(innermost()),
	      unwinding_(std::uncaught_exceptions())
	{
		innermost() = this;
	}
	~block()
	{
		innermost() = around_;
	}
	block(const block &) = delete;
	block &operator=(const block &) = delete;
	static void *operator new(std::size_t) = delete;

	nanoseconds remaining() const
	{
		return expires_ - limit_.now();
	}

	/* Throws if it has expired, unless an exception is leaving it. */
	void check() const
	{
		const nanoseconds left = remaining();

		if (left > nanoseconds(0) || std::uncaught_exceptions() > unwinding_)
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
				least = std::min(least, it->remaining());
		return least;
	}

	static const block *&innermost()
	{
		static thread_local const block *innermost = nullptr;

		return innermost;
	}

      private:
	limit limit_;
	nanoseconds expires_;
	const block *around_;
	int unwinding_;
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
