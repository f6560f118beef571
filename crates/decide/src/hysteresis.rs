//! When a new grant differs enough from what is in force to be worth a system call.
//!
//! Predictions tremble with every job. A raise that matters is made at once, because the next job
//! needs it; a smaller one waits until its lack has added up. A shrink waits until keeping the old
//! grant has wasted, over the jobs since, a fixed fraction of one job's runtime: a large shrink
//! comes after a job or two, one of 5% after eight, and a job that needs the old grant again starts the
//! count anew. So the waste of hesitating is bounded, whatever the size of the step.

use onbeat_model::{Reservation, Span};

/// How much a grant must differ.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Thresholds {
    /// A raise by at least this fraction of the runtime is made at once.
    pub raise: f64,
    /// A shrink by less than this fraction is never made.
    pub shrink: f64,
    /// How much may be wasted (or lacking) before a shrink (or a smaller raise) is made: the sum,
    /// over the jobs since, of the fraction by which the runtime was too long (or too short).
    pub patience: f64,
    /// A change of the period by at least this fraction is made at once.
    pub period: f64,
}

impl Default for Thresholds {
    fn default() -> Self {
        Self {
            raise: 0.05,
            shrink: 0.05,
            patience: 0.40,
            period: 0.002,
        }
    }
}

/// Decides for one task, job by job.
#[derive(Clone, Copy, Debug, Default)]
pub struct Hysteresis {
    thresholds: Thresholds,
    waste: f64,
    most_wanted: Span,
    lack: f64,
}

impl Hysteresis {
    /// Has seen nothing yet.
    #[must_use]
    pub fn new(thresholds: Thresholds) -> Self {
        Self {
            thresholds,
            ..Self::default()
        }
    }

    /// The task holds `held` and could be granted `granted`: what to put in force now, if anything.
    /// To be asked once per job, and whenever a budget ran out.
    pub fn consider(
        &mut self,
        held: Option<Reservation>,
        granted: Reservation,
    ) -> Option<Reservation> {
        let worth_it = match held {
            None => Some(granted),
            Some(held) if self.is_another_shape(held, granted) => Some(granted),
            Some(held) => self.change(held, granted),
        };
        if worth_it.is_some() {
            self.forget();
        }
        worth_it
    }

    /// Starts counting anew, as after a reservation was changed by other means.
    pub fn forget(&mut self) {
        *self = Self::new(self.thresholds);
    }

    fn is_another_shape(&self, held: Reservation, granted: Reservation) -> bool {
        let differs = |a: Span, b: Span| a.abs_diff(b).ratio(a) >= self.thresholds.period;
        differs(held.period(), granted.period()) || differs(held.deadline(), granted.deadline())
    }

    fn change(&mut self, held: Reservation, granted: Reservation) -> Option<Reservation> {
        let now = held.runtime();
        let wanted = granted.runtime();
        let more = (wanted - now).ratio(now);
        let less = (now - wanted).ratio(now);
        if more >= self.thresholds.raise {
            return Some(granted);
        }
        if less < self.thresholds.shrink {
            self.waste = 0.0;
            self.most_wanted = Span::ZERO;
        } else {
            self.waste += less;
            self.most_wanted = self.most_wanted.max(wanted);
        }
        self.lack = if more > 0.0 { self.lack + more } else { 0.0 };
        if self.lack >= self.thresholds.patience {
            Some(granted)
        } else if self.waste >= self.thresholds.patience {
            Reservation::new(self.most_wanted, granted.deadline(), granted.period()).ok()
        } else {
            None
        }
    }
}
