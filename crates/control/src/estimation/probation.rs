//! A thread's trials: a starving thread's chance to show its rhythm.

use onbeat_model::{Bandwidth, Burst, Capacity, Instant, Reservation, Span};

use super::schedule::Attempts;
use super::starvation::TRIAL;
use crate::task::{Heard, Thread};
use crate::{Settings, Why};

/// Whether a trial is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TrialEnd {
    /// Not before then.
    NotYet(Instant),
    /// It is, and the thread has shown no rhythm.
    InVain,
    /// There is none any more.
    NotOnTrial,
}

/// What a thread on trial is given.
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
    /// Somebody says that it is worth a trial. False if it needs none: it has a rhythm, or what it asked
    /// for, or is on trial.
    pub(crate) fn try_out(&mut self, terms: Terms, now: Instant) -> bool {
        let may = self.needs_trial();
        if may {
            self.begin_trial(Some(terms), now);
        }
        may
    }

    /// Nobody tells of it any more: what was known about its work is forgotten.
    pub(crate) fn stop_listening(&mut self) {
        self.last_rhythm = self.rhythm();
        self.estimation.forget();
        self.unheard = true;
    }

    /// Neither has it a rhythm or a trial, nor what somebody asked for.
    fn needs_trial(&self) -> bool {
        !self.is_kept() && !self.is_on_trial() && self.fixed.is_none() && self.enforcement.is_open()
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

    /// Whether it may be on trial, as far as it is up to the thread.
    pub(crate) fn may_be_tried(&self, settings: &Settings) -> bool {
        settings.trials
            && self.needs_trial()
            && !self.protection.helps()
            && self.path.may_be_tried()
    }

    /// It is on trial from now on.
    pub(crate) fn begin_trial(&mut self, terms: Option<Terms>, now: Instant) {
        self.starving.tried(now);
        self.estimation.begin_probation(now, terms);
        self.analyser.clear();
        self.attempts = Attempts::new();
    }

    /// It may not be on trial now: the next time is not before `until`.
    pub(crate) fn postpone_trial(&mut self, until: Instant) {
        self.starving.postpone(until);
    }

    /// Another thread is on trial at `now`: why this one is to join it, if it starves as well.
    pub(crate) fn starves_too(&self, now: Instant, settings: &Settings) -> Option<Why> {
        if !self.may_be_tried(settings) || !self.starving.starves_too(now) {
            return None;
        }
        let (waited, over) = self.starving.waited(now);
        Some(Why::Starves { waited, over })
    }

    /// It has executed for `executed` up to `now`: when to look again, and why it is to be on trial, if it is.
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

    /// Trials end at `until`, but none lasts longer than two: whether this one is over at `now`.
    pub(crate) fn ends_trial(&mut self, now: Instant, until: Instant) -> TrialEnd {
        let Some(probation) = self.estimation.probation() else {
            return TrialEnd::NotOnTrial;
        };
        let end = until.min(probation.since + TRIAL * 2);
        if now < end {
            return TrialEnd::NotYet(end);
        }
        self.estimation.end_probation();
        TrialEnd::InVain
    }
}
