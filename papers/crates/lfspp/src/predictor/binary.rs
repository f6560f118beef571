//! The baseline: the controller of LFS, which knows only whether the last job had enough.
//!
//! LFS, the forerunner (described in LFS++, section 2), "samples a binary variable that simply says
//! whether the task received enough computation in the last period or not": more if not, a little
//! less if so. It never learns how much is needed, so it swings around it.

use onbeat_decide::predictor::{Pace, Predictor};
use onbeat_model::{Demand, Instant, Job, Reservation, Span};

pub struct Binary {
    steps: BinarySteps,
    runtime: Option<Span>,
    pace: Pace,
}

/// The paper prints neither.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BinarySteps {
    /// How much the runtime is raised after a job that exhausted it, ...
    pub raise: f64,
    /// ... and lowered after a job that did not.
    pub lower: f64,
}

impl Default for BinarySteps {
    fn default() -> Self {
        Self {
            raise: 0.25,
            lower: 0.01,
        }
    }
}

impl Binary {
    #[must_use]
    pub fn new(steps: BinarySteps) -> Self {
        Self {
            steps,
            runtime: None,
            pace: Pace::default(),
        }
    }
}

impl Predictor for Binary {
    /// Starts at twice the first job; from then on only whether the budget ran out counts.
    fn job(&mut self, job: &Job, _demand: &Demand) {
        self.pace = Pace::of(job);
        self.runtime = Some(match self.runtime {
            None => job.executed * 2,
            Some(runtime) if job.exhausted => runtime,
            Some(runtime) => runtime.scale(1.0 - self.steps.lower.clamp(0.0, 1.0)),
        });
    }

    fn exhausted(&mut self, _at: Instant, held: Reservation) {
        let raised = held.runtime().scale(1.0 + self.steps.raise.max(0.0));
        self.runtime = Some(raised);
    }

    fn rate_changed(&mut self, period: Span) {
        let stretch = self.pace.stretch(period);
        self.runtime = self.runtime.map(|runtime| runtime.scale(stretch));
        self.pace = Pace(Some(period));
    }

    fn speed_changed(&mut self, factor: f64) {
        self.runtime = self.runtime.map(|runtime| runtime.scale(factor));
    }

    fn runtime(&self, period: Span) -> Option<Span> {
        self.runtime.map(|runtime| runtime.min(period))
    }
}
