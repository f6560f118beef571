//! Probation: a starving thread's chance to show its period.
//!
//! This file says whether a thread may go on probation, on which terms, and when its probation
//! ends. A probation costs other programs CPU time, and a batch program starves, too. So the
//! threads of a process go on probation together only if the process hears a clock
//! (`run_loop/probations.rs`). Of each payer's other threads, one at a time is on probation, with
//! pauses that grow to a minute.

use std::collections::HashMap;

use onbeat_model::{Bandwidth, Burst, Capacity, Instant, Reservation, Span};

use super::schedule::Attempts;
use super::starvation::{FIRST_PAUSE, PROBATION};
use crate::task::{Heard, Thread};
use crate::{Settings, Why};

/// The answer to whether a probation is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProbationEnd {
    /// It ends then.
    NotYet(Instant),
    /// It is over, and the thread has shown no rhythm.
    InVain,
    /// The thread is not on probation.
    NotOnProbation,
}

/// The reservation of a thread on probation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Terms {
    /// The share of a CPU.
    pub(crate) share: Bandwidth,
    /// Its period.
    pub(crate) period: Span,
}

impl Terms {
    /// The terms for a starving thread, of which a period may be expected.
    pub(crate) fn of(settings: &Settings, expected: Option<Span>) -> Self {
        Self {
            share: settings.trial_share,
            period: expected.unwrap_or(settings.trial_period),
        }
    }
}

impl Thread {
    /// Puts the thread on probation by request. False if it needs none: it has a rhythm, a fixed
    /// reservation, or a probation already.
    pub(crate) fn try_out(&mut self, terms: Terms, now: Instant) -> bool {
        let may = self.needs_probation();
        if may {
            self.begin_probation(Some(terms), now);
        }
        may
    }

    /// Forgets the thread's work, because it is no longer tracked.
    pub(crate) fn stop_listening(&mut self) {
        self.last_rhythm = self.rhythm();
        self.estimation.forget();
        self.unheard = true;
    }

    /// True without a rhythm, a probation and a fixed reservation.
    fn needs_probation(&self) -> bool {
        !self.is_locked()
            && !self.is_on_probation()
            && self.fixed.is_none()
            && self.enforcement.is_open()
    }

    /// `wish` within its owner's ceiling; none if that is too little for a reservation.
    pub(crate) fn under_ceiling(
        &self,
        wish: Reservation,
        capacity: &Capacity,
    ) -> Option<Reservation> {
        let cap = self.treatment.and_then(|treatment| treatment.cap);
        let ceiling = self.ceiling.into_iter().chain(cap).min();
        let Some(ceiling) = ceiling.filter(|&ceiling| ceiling < wish.bandwidth()) else {
            return Some(wish);
        };
        let runtime = ceiling.runtime_in(wish.period());
        (runtime >= capacity.shortest_runtime)
            .then(|| Reservation::new(runtime, wish.deadline(), wish.period()).ok())?
    }

    pub(crate) fn starve(&mut self, burst: &Burst, settings: &Settings) -> Heard {
        if !self.may_be_tried(settings) || !self.starving.heard(burst) {
            return Heard::Nothing;
        }
        let (waited, over) = self.starving.waited(burst.blocked);
        Heard::Starves(Why::Starves { waited, over })
    }

    /// True if nothing about the thread itself speaks against a probation.
    pub(crate) fn may_be_tried(&self, settings: &Settings) -> bool {
        settings.trials
            && self.needs_probation()
            && !self.protection.helps()
            && !self.protection.is_declined()
            && self.path.may_be_tried()
    }

    /// Begins a probation.
    pub(crate) fn begin_probation(&mut self, terms: Option<Terms>, now: Instant) {
        self.starving.tried(now);
        self.estimation.begin_probation(now, terms);
        self.analyser.clear();
        self.attempts = Attempts::new();
    }

    /// Puts off its probation to `until`.
    pub(crate) fn postpone_probation(&mut self, until: Instant) {
        self.starving.postpone(until);
    }

    /// The reason why the thread joins another one on probation, if it starves as well.
    pub(crate) fn starves_too(&self, now: Instant, settings: &Settings) -> Option<Why> {
        if !self.may_be_tried(settings) || !self.starving.starves_too(now) {
            return None;
        }
        let (waited, over) = self.starving.waited(now);
        Some(Why::Starves { waited, over })
    }

    /// Looks at its CPU time. Returns when to look again, and the reason for a probation, if there
    /// is one.
    pub(crate) fn look(
        &mut self,
        now: Instant,
        executed: Span,
        settings: &Settings,
    ) -> (Instant, Option<Why>) {
        // Not its last mark: a thread that is late notifies again and again, and does not block.
        let blocked = self.blocked.unwrap_or(self.first_heard);
        let over = now.since(blocked);
        let seen = self.starving.look(now, executed, blocked);
        if seen.starved_for.is_none() || !self.may_be_tried(settings) {
            return (seen.next, None);
        }
        (seen.next, Some(Why::NeverBlocks { over }))
    }

    /// Ends its probation if it is over at `now`. Probations end together at `until`, but none
    /// lasts longer than twice [`PROBATION`].
    pub(crate) fn ends_probation(&mut self, now: Instant, until: Instant) -> ProbationEnd {
        let Some(probation) = self.estimation.probation() else {
            return ProbationEnd::NotOnProbation;
        };
        let end = until.min(probation.since + PROBATION * 2);
        if now < end {
            return ProbationEnd::NotYet(end);
        }
        self.estimation.end_probation();
        ProbationEnd::InVain
    }
}

/// The longest pause between two probations of threads without a clock. With it, they take a
/// twentieth of one CPU.
const LONGEST_PAUSE_ALONE: Span = Span::from_secs(60);

/// The present probations, and those of threads without a clock.
#[derive(Debug, Default)]
pub(crate) struct Probations {
    until: Instant,
    /// By payer.
    alone: HashMap<u32, Alone>,
}

/// The probations of a payer's threads without a clock.
#[derive(Clone, Copy, Debug, Default)]
struct Alone {
    times: u32,
    not_before: Instant,
}

impl Probations {
    /// The end of the present probations.
    pub(crate) const fn until(&self) -> Instant {
        self.until
    }

    /// Has all present probations last until `until` at least, and returns their end.
    pub(crate) fn extend(&mut self, until: Instant) -> Instant {
        self.until = self.until.max(until);
        self.until
    }

    /// True if one of the payer's threads without a clock may go on probation now. Counts it.
    pub(crate) fn admits_alone(&mut self, payer: u32, now: Instant) -> bool {
        let alone = self.alone.entry(payer).or_default();
        if now < alone.not_before {
            return false;
        }
        let pause = FIRST_PAUSE.doubled(alone.times, LONGEST_PAUSE_ALONE);
        alone.times = alone.times.saturating_add(1);
        alone.not_before = now + PROBATION + pause;
        true
    }

    /// Ends the pause of a payer because one of its threads has shown a rhythm.
    pub(crate) fn proved(&mut self, payer: u32) {
        self.alone.remove(&payer);
    }
}
