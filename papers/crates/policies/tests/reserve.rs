//! `schedulers/reserve/policy.h`: group reservations, a constant bandwidth server for several
//! threads on several CPUs, as the scheduler in the kernel has them.
//!
//! Other than the policies behind [`Rules`](onbeat_policies::Rules), this one keeps a record of a
//! group and not of a task. The caller keeps the queues, takes the group with the earliest deadline
//! that has something [`available`](Group::available), and returns each portion that it took.

use onbeat_model::{Instant, Span};
// The library has the compiled header.
use onbeat_policies as _;

#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Params {
    /// The most that a CPU takes from a budget at once.
    portion_ns: u64,
    /// How long a task without a reservation runs before the next one does.
    slice_ns: u64,
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
struct Group {
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

unsafe extern "C" {
    static reserve_default_params: Params;
    fn reserve_set(group: *mut Group, runtime_ns: u64, deadline_ns: u64, period_ns: u64, now: u64);
    fn reserve_wake(group: *mut Group, now: u64) -> u64;
    fn reserve_block(group: *mut Group);
    fn reserve_available(group: *const Group) -> u64;
    fn reserve_take(params: *const Params, group: *mut Group) -> u64;
    fn reserve_return(group: *mut Group, portion_ns: u64, used_ns: u64, now: u64) -> u64;
    fn reserve_timer(group: *mut Group, now: u64) -> bool;
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
    fn set(&mut self, runtime: Span, deadline: Span, period: Span, now: Instant) {
        let [runtime, deadline, period] = [runtime, deadline, period].map(Span::as_ns);
        // SAFETY: as above.
        unsafe { reserve_set(self, runtime, deadline, period, now.as_ns()) }
    }

    /// A thread of the group wants to run. Answers when it may, if not now.
    fn wake(&mut self, now: Instant) -> Option<Instant> {
        // SAFETY: as above.
        instant(unsafe { reserve_wake(self, now.as_ns()) })
    }

    fn block(&mut self) {
        // SAFETY: as above.
        unsafe { reserve_block(self) }
    }

    /// How much of the budget a CPU could take.
    fn available(&self) -> Span {
        // SAFETY: as above.
        Span::from_ns(unsafe { reserve_available(self) })
    }

    /// A CPU takes a portion of the budget; nothing if none is left.
    fn take(&mut self, params: &Params) -> Span {
        // SAFETY: as above.
        Span::from_ns(unsafe { reserve_take(params, self) })
    }

    /// A CPU hands its portion back, having run for `used`. Answers when the budget is replenished,
    /// if it is used up.
    fn give_back(&mut self, portion: Span, used: Span, now: Instant) -> Option<Instant> {
        let (portion, used) = (portion.as_ns(), used.as_ns());
        // SAFETY: as above.
        instant(unsafe { reserve_return(self, portion, used, now.as_ns()) })
    }

    /// The timer for the replenishment has fired. Answers whether the group may run again.
    fn timer(&mut self, now: Instant) -> bool {
        // SAFETY: as above.
        unsafe { reserve_timer(self, now.as_ns()) }
    }

    fn deadline(&self) -> Instant {
        Instant::from_ns(self.deadline)
    }

    /// Whether the group waits for its next budget.
    fn waits(&self) -> bool {
        self.replenish_at != 0
    }
}

const MS: u64 = 1_000_000;

fn ms(number: u64) -> Span {
    Span::from_ms(number)
}

fn at(number: u64) -> Instant {
    Instant::from_ns(number * MS)
}

/// 6 ms every 20 ms, from time 100 ms on.
fn group() -> Group {
    let mut group = Group::default();
    group.set(ms(6), ms(20), ms(20), at(100));
    group
}

#[test]
fn the_structures_are_as_long_here_as_in_c() {
    let ours = [size_of::<Params>(), size_of::<Group>()];
    unsafe extern "C" {
        static reserve_sizes: [u64; 2];
    }
    // SAFETY: it is constant, and laid out as the type says.
    let theirs = unsafe { reserve_sizes };
    assert_eq!(theirs, ours.map(|size| size as u64));
}

#[test]
fn portions_of_several_cpus_are_together_never_more_than_the_budget() {
    let params = Params {
        portion_ns: 4 * MS,
        ..Params::default()
    };
    let mut group = group();
    assert_eq!(group.wake(at(100)), None);
    assert_eq!(group.take(&params), ms(4));
    assert_eq!(group.take(&params), ms(2));
    assert_eq!(group.take(&params), ms(0));
    assert_eq!(group.available(), ms(0));
    assert!(!group.waits(), "it is handed out, and not used up");
    assert_eq!(group.give_back(ms(4), ms(1), at(101)), None);
    assert_eq!(
        group.available(),
        ms(3),
        "what was not used can be had by another CPU"
    );
}

#[test]
fn who_has_used_up_the_budget_waits_for_the_next_period() {
    let params = Params {
        portion_ns: 6 * MS,
        ..Params::default()
    };
    let mut group = group();
    group.wake(at(100));
    group.take(&params);
    assert_eq!(group.give_back(ms(6), ms(6), at(106)), Some(at(120)));
    assert_eq!(
        group.wake(at(107)),
        Some(at(120)),
        "whoever else wakes waits, too"
    );
    assert!(!group.timer(at(119)), "an early timer changes nothing");
    assert!(group.timer(at(120)));
    assert_eq!((group.available(), group.deadline()), (ms(6), at(140)));
    assert_eq!(group.exhausted, 1);
}

#[test]
fn an_overrun_is_paid_for_and_one_beyond_all_measure_forgiven() {
    let params = Params {
        portion_ns: 6 * MS,
        ..Params::default()
    };
    let mut paying = group();
    paying.wake(at(100));
    paying.take(&params);
    paying.give_back(ms(6), ms(10), at(110));
    paying.timer(at(120));
    assert_eq!((paying.available(), paying.deadline()), (ms(2), at(140)));

    let mut forgiven = group();
    forgiven.wake(at(100));
    forgiven.take(&params);
    forgiven.give_back(ms(6), ms(4000), at(119));
    forgiven.timer(at(120));
    assert_eq!(
        (forgiven.available(), forgiven.deadline()),
        (ms(6), at(180)),
        "two periods late at most"
    );
}

#[test]
fn a_wakeup_keeps_what_does_not_exceed_the_bandwidth_and_begins_anew_otherwise() {
    let params = Params::default();
    let mut kept = group();
    kept.wake(at(100));
    kept.take(&params);
    kept.give_back(ms(1), ms(1), at(101));
    kept.block();
    // 5 ms are left, which are 30% of 16.67 ms.
    kept.wake(at(103));
    assert_eq!((kept.available(), kept.deadline()), (ms(5), at(120)));
    kept.block();
    kept.wake(at(104));
    assert_eq!((kept.available(), kept.deadline()), (ms(6), at(124)));
}

#[test]
fn a_constrained_deadline_gives_no_second_budget_in_a_period() {
    let mut early = Group::default();
    early.set(ms(4), ms(8), ms(20), at(100));
    early.wake(at(100));
    early.block();
    assert_eq!(early.wake(at(104)), None);
    assert_eq!(
        early.available(),
        ms(2),
        "half of what is left before the deadline"
    );
    early.block();
    assert_eq!(
        early.wake(at(109)),
        Some(at(120)),
        "after it, the next period's"
    );
    assert!(early.timer(at(120)));
    assert_eq!((early.available(), early.deadline()), (ms(4), at(128)));
}

#[test]
fn a_change_gives_no_budget_before_the_next_period_and_a_taken_reservation_none_at_all() {
    let mut group = group();
    group.wake(at(100));
    group.set(ms(10), ms(20), ms(20), at(101));
    assert_eq!(group.available(), ms(6));
    group.set(ms(2), ms(20), ms(20), at(102));
    assert_eq!(group.available(), ms(2));
    unsafe extern "C" {
        fn reserve_clear(group: *mut Group);
    }
    // SAFETY: it is whole, and in the layout of the C structure.
    unsafe { reserve_clear(&raw mut group) };
    assert_eq!(group.available(), ms(0));
}
