//! Probation: a starving thread's chance to show its period.
//!
//! This file says whether a thread may be tried, on which terms, and when its probation is over; it
//! bounds how often threads without a clock are tried. A probation costs other programs CPU time,
//! and a batch program starves, too. So threads of a process are tried together only if a clock is
//! heard in it (`run_loop/probations.rs`). Other threads are tried one at a time for each payer,
//! with pauses that grow to a minute.

use std::collections::HashMap;

use onbeat_model::{Bandwidth, Burst, Capacity, Instant, Reservation, Span};

use super::schedule::Attempts;
use super::starvation::{FIRST_PAUSE, PROBATION};
use crate::task::{Heard, Thread};
use crate::{Settings, Why};

/// Whether a probation is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProbationEnd {
    /// Not before then.
    NotYet(Instant),
    /// It is, and the thread has shown no rhythm.
    InVain,
    /// There is none any more.
    NotOnProbation,
}

/// What a thread on probation is given.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Terms {
    /// The share of a CPU.
    pub(crate) share: Bandwidth,
    /// In which period.
    pub(crate) period: Span,
}

impl Terms {
    /// What a starving thread gets.
    pub(crate) const fn of(settings: &Settings) -> Self {
        Self {
            share: settings.trial_share,
            period: settings.trial_period,
        }
    }
}

impl Thread {
    /// Somebody says that it is worth a probation. False if it needs none: it has a rhythm, or what it asked
    /// for, or is on probation.
    pub(crate) fn try_out(&mut self, terms: Terms, now: Instant) -> bool {
        let may = self.needs_probation();
        if may {
            self.begin_probation(Some(terms), now);
        }
        may
    }

    /// Nobody tells of it any more: what was known about its work is forgotten.
    pub(crate) fn stop_listening(&mut self) {
        self.last_rhythm = self.rhythm();
        self.estimation.forget();
        self.unheard = true;
    }

    /// Neither has it a rhythm or a probation, nor what somebody asked for.
    fn needs_probation(&self) -> bool {
        !self.is_locked()
            && !self.is_on_probation()
            && self.fixed.is_none()
            && self.enforcement.is_open()
    }

    /// As much of `wish` as its owner may have; none if that is too little to be put in force.
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

    /// Whether it may be on probation, as far as it is up to the thread.
    pub(crate) fn may_be_tried(&self, settings: &Settings) -> bool {
        settings.trials
            && self.needs_probation()
            && !self.protection.helps()
            && !self.protection.is_declined()
            && self.path.may_be_tried()
    }

    /// It is on probation from now on.
    pub(crate) fn begin_probation(&mut self, terms: Option<Terms>, now: Instant) {
        self.starving.tried(now);
        self.estimation.begin_probation(now, terms);
        self.analyser.clear();
        self.attempts = Attempts::new();
    }

    /// It may not be on probation now: the next time is not before `until`.
    pub(crate) fn postpone_probation(&mut self, until: Instant) {
        self.starving.postpone(until);
    }

    /// Another thread is on probation at `now`: why this one is to join it, if it starves as well.
    pub(crate) fn starves_too(&self, now: Instant, settings: &Settings) -> Option<Why> {
        if !self.may_be_tried(settings) || !self.starving.starves_too(now) {
            return None;
        }
        let (waited, over) = self.starving.waited(now);
        Some(Why::Starves { waited, over })
    }

    /// It has executed for `executed` up to `now`: when to look again, and why it is to be on probation, if it is.
    pub(crate) fn look(
        &mut self,
        now: Instant,
        executed: Span,
        settings: &Settings,
    ) -> (Instant, Option<Why>) {
        let over = now.since(self.last_heard);
        let seen = self.starving.look(now, executed, self.last_heard);
        if seen.starved_for.is_none() || !self.may_be_tried(settings) {
            return (seen.next, None);
        }
        (seen.next, Some(Why::NeverBlocks { over }))
    }

    /// Probations end at `until`, but none lasts longer than two: whether this one is over at `now`.
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

/// The longest pause between two probations of threads without a clock: they then take a twentieth of the
/// time, of one CPU.
const LONGEST_PAUSE_ALONE: Span = Span::from_secs(60);

/// The probations under way, and those that were alone.
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
    /// When the probations under way end.
    pub(crate) const fn until(&self) -> Instant {
        self.until
    }

    /// A probation begins that lasts until `until`: so do all.
    pub(crate) fn extend(&mut self, until: Instant) -> Instant {
        self.until = self.until.max(until);
        self.until
    }

    /// Whether a thread of the payer's that has no clock may be tried now; counts it if so.
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

    /// A thread of the payer's has shown a rhythm: the next probation need not wait as if it had not.
    pub(crate) fn proved(&mut self, payer: u32) {
        self.alone.remove(&payer);
    }
}
