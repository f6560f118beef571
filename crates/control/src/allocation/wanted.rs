//! What would serve a thread, and how it is to be treated.

use onbeat_decide::predictor::Kind;
use onbeat_model::{Reservation, Span};

use super::{Conditions, server};
use crate::estimation::lock::Lock;
use crate::estimation::probation::Terms;
use crate::task::Thread;
use crate::task::state::Estimation;
use crate::{Settings, Treatment};

/// A stage has other work, too, for which nobody asked to hold it up: a budget is enforced at the
/// scheduler's tick, and of less than this it would take too many periods to pay for one that it
/// overran by.
const LEAST_OF_STAGE: f64 = 0.05;

impl Thread {
    pub(crate) fn treatment(&mut self, settings: &Settings) -> Treatment {
        let task = &self.task;
        *self.treatment.get_or_insert_with(|| (settings.treat)(task))
    }

    /// How its next budget is predicted.
    pub(crate) fn predictor(&mut self, settings: &Settings) -> Kind {
        let own = self.treatment(settings).predictor;
        own.unwrap_or(settings.predictor)
    }

    /// The reservation that would serve it, and the execution time of a job that this provides for,
    /// if jobs took `stretch` times as long as they do. (A trial's share is no job's.)
    pub(crate) fn wanted(&self, conditions: &Conditions<'_>) -> Option<(Reservation, Span)> {
        self.wanted_for(Lock::runtime, conditions)
    }

    /// Of that, what is wanted for longer than it takes to catch up after an overrun.
    pub(crate) fn lasting(&self, conditions: &Conditions<'_>) -> Option<Reservation> {
        let (wanted, _) = self.wanted_for(Lock::lasting, conditions)?;
        Some(wanted)
    }

    fn wanted_for(
        &self,
        runtime: fn(&Lock) -> Option<Span>,
        conditions: &Conditions<'_>,
    ) -> Option<(Reservation, Span)> {
        let Conditions {
            settings,
            capacity,
            stretch,
        } = *conditions;
        if let Some(fixed) = self.fixed {
            return Some((fixed, fixed.runtime()));
        }
        let mut floor = settings.shortest_runtime;
        let (job, period) = match &self.estimation {
            Estimation::Locked(locked) => {
                let lock = locked.lock();
                let raised = runtime(lock)?.scale(self.notification.factor());
                let period = lock.rhythm().period;
                if lock.is_derived() {
                    floor = floor.max(period.scale(LEAST_OF_STAGE));
                }
                (raised.scale(stretch), period)
            }
            Estimation::Probation(probation) if !self.protection.helps() => {
                let expected = self.treatment.and_then(|treatment| treatment.period);
                let terms = probation.terms.unwrap_or(Terms::of(settings, expected));
                (terms.share.runtime_in(terms.period), terms.period)
            }
            _ => return None,
        };
        let wanted = server::reservation(job, period, floor, capacity)?;
        Some((self.under_ceiling(wanted, capacity)?, job))
    }
}
