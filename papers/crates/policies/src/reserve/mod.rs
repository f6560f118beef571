//! `schedulers/reserve/policy.h`: group reservations, a constant bandwidth server for several
//! threads on several CPUs.
//!
//! Other than the policies behind [`Rules`](crate::Rules), this one keeps a record of a group and
//! not of a task, so it has functions of its own. The caller keeps the queues, takes the group with
//! the earliest deadline that has something [`available`](Group::available), and returns each
//! portion that it took.

use onbeat_model::{Instant, Span};

#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Params {
    /// The most that a CPU takes from a budget at once.
    pub portion_ns: u64,
    /// How long a task without a reservation runs before the next one does.
    pub slice_ns: u64,
}

impl Default for Params {
    fn default() -> Self {
        // SAFETY: it is constant, and laid out as the type says.
        unsafe { reserve_default_params }
    }
}

/// A group and what is left of its budget.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Group {
    runtime_ns: u64,
    deadline_ns: u64,
    period_ns: u64,
    left_ns: u64,
    out_ns: u64,
    debt_ns: u64,
    deadline: u64,
    replenish_at: u64,
    ready: u64,
    used_ns: u64,
    exhausted: u64,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rest {
    /// The time that it has run, divided by its weight: the least is first in line.
    pub passed_ns: u64,
}

unsafe extern "C" {
    static reserve_default_params: Params;
    fn reserve_set(group: *mut Group, runtime_ns: u64, deadline_ns: u64, period_ns: u64, now: u64);
    fn reserve_wake(group: *mut Group, now: u64) -> u64;
    fn reserve_block(group: *mut Group);
    fn reserve_available(group: *const Group) -> u64;
    fn reserve_take(params: *const Params, group: *mut Group) -> u64;
    fn reserve_return(group: *mut Group, portion_ns: u64, used_ns: u64, now: u64) -> u64;
    fn reserve_timer(group: *mut Group, now: u64) -> bool;
    fn reserve_rest_wake(params: *const Params, rest: *mut Rest, virtual_ns: u64);
    fn reserve_rest_stand(rest: *mut Rest, first_ns: u64);
    fn reserve_rest_charge(rest: *mut Rest, weight: u64, ran_ns: u64);
}

fn instant(ns: u64) -> Option<Instant> {
    (ns != 0).then(|| Instant::from_ns(ns))
}

// SAFETY of every call below: the functions are those of the header, compiled with structures of
// the same layout (a test compares their sizes); they read and write what they are given and
// nothing else, keep no pointer, and return. The references are valid and, where a function writes,
// exclusive.
impl Group {
    /// Gives the group a reservation, or changes the one that it has. None of the times is longer
    /// than four seconds, `deadline` is not longer than `period`, and the runtime is not zero; it
    /// may be longer than the deadline if several CPUs are to give it.
    pub fn set(&mut self, runtime: Span, deadline: Span, period: Span, now: Instant) {
        let [runtime, deadline, period] = [runtime, deadline, period].map(Span::as_ns);
        // SAFETY: as above.
        unsafe { reserve_set(self, runtime, deadline, period, now.as_ns()) }
    }

    /// A thread of the group wants to run. Answers when it may, if not now.
    pub fn wake(&mut self, now: Instant) -> Option<Instant> {
        // SAFETY: as above.
        instant(unsafe { reserve_wake(self, now.as_ns()) })
    }

    pub fn block(&mut self) {
        // SAFETY: as above.
        unsafe { reserve_block(self) }
    }

    /// How much of the budget a CPU could take.
    pub fn available(&self) -> Span {
        // SAFETY: as above.
        Span::from_ns(unsafe { reserve_available(self) })
    }

    /// A CPU takes a portion of the budget; nothing if none is left.
    pub fn take(&mut self, params: &Params) -> Span {
        // SAFETY: as above.
        Span::from_ns(unsafe { reserve_take(params, self) })
    }

    /// A CPU hands its portion back, having run for `used`. Answers when the budget is replenished,
    /// if it is used up.
    pub fn give_back(&mut self, portion: Span, used: Span, now: Instant) -> Option<Instant> {
        let (portion, used) = (portion.as_ns(), used.as_ns());
        // SAFETY: as above.
        instant(unsafe { reserve_return(self, portion, used, now.as_ns()) })
    }

    /// The timer for the replenishment has fired. Answers whether the group may run again.
    pub fn timer(&mut self, now: Instant) -> bool {
        // SAFETY: as above.
        unsafe { reserve_timer(self, now.as_ns()) }
    }

    pub const fn deadline(&self) -> Instant {
        Instant::from_ns(self.deadline)
    }

    /// Whether the group waits for its next budget.
    pub const fn waits(&self) -> bool {
        self.replenish_at != 0
    }
}

impl Rest {
    /// The task wants to run; the others have got to `passed`.
    pub fn wake(&mut self, params: &Params, passed: Span) {
        // SAFETY: as above.
        unsafe { reserve_rest_wake(params, self, passed.as_ns()) }
    }

    /// The task stands in line, the first of which has got to `first`: it is a second behind that
    /// at most.
    pub fn stand(&mut self, first: Span) {
        // SAFETY: as above.
        unsafe { reserve_rest_stand(self, first.as_ns()) }
    }

    /// The task, of this weight, has run.
    pub fn charge(&mut self, weight: u64, ran: Span) {
        // SAFETY: as above.
        unsafe { reserve_rest_charge(self, weight, ran.as_ns()) }
    }
}

#[cfg(test)]
mod tests;
