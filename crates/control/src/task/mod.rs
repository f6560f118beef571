//! The record of one tracked thread: its identity, how it is treated, what is known of its period,
//! and its account.
//!
//! The parts of the loop that act on threads have their states of a thread in tables of their own
//! (`slots.rs`): its request, what is in force, its protection, its role in pipelines.

pub(crate) mod clock;
pub(crate) mod table;

use onbeat_model::{Bandwidth, Instant, Task};

use crate::estimation::Estimator;
use crate::report::account::ThreadAccount;
use crate::{EstimationSettings, Party, Settings, Treatment};

pub(crate) struct TrackedThread {
    pub(crate) task: Task,
    pub(crate) party: Party,
    treatment: Option<Treatment>,
    /// It is not tracked, and here only because of its reservation.
    pub(crate) unheard: bool,
    pub(crate) yields: bool,
    /// A timer is set to look at it.
    pub(crate) looked_after: bool,
    pub(crate) estimator: Estimator,
    pub(crate) account: ThreadAccount,
}

impl TrackedThread {
    pub(crate) fn new(task: Task, at: Instant, settings: &Settings) -> Self {
        Self {
            task,
            party: (settings.parties)(task.id),
            treatment: None,
            unheard: false,
            yields: false,
            looked_after: false,
            estimator: Estimator::new(at),
            account: ThreadAccount {
                listener: settings.jobs.clone(),
                ..ThreadAccount::default()
            },
        }
    }

    /// How it is treated, which is asked for the first time only.
    pub(crate) fn treatment(&mut self, settings: &Settings) -> Treatment {
        let task = &self.task;
        *self.treatment.get_or_insert_with(|| (settings.treat)(task))
    }

    pub(crate) fn application(&self) -> u32 {
        self.party.application.unwrap_or(self.task.pid)
    }

    pub(crate) fn ceiling(&self, ceiling: Option<Bandwidth>) -> Option<Bandwidth> {
        let cap = self.treatment.and_then(|treatment| treatment.cap);
        ceiling.into_iter().chain(cap).min()
    }

    pub(crate) fn forget_treatment(&mut self) {
        self.treatment = None;
    }

    pub(crate) fn estimation(&mut self, settings: &Settings) -> EstimationSettings {
        let own = self.treatment(settings).predictor;
        EstimationSettings {
            predictor: own.unwrap_or(settings.estimation.predictor),
            ..settings.estimation
        }
    }

    /// Forgets its work, because it is no longer tracked.
    pub(crate) fn stop_listening(&mut self) {
        self.estimator.forget();
        self.unheard = true;
    }

    /// When to set the one timer that looks at it; none if that is set, or there is nothing to look
    /// for.
    pub(crate) fn look_due(&mut self, now: Instant) -> Option<Instant> {
        let due = self.estimator.rests_at(now);
        let due = due.filter(|_| !self.looked_after)?;
        self.looked_after = true;
        Some(due)
    }
}
