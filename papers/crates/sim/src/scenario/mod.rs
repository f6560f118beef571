//! A machine, its tasks, and for how long: read from a file, and run.
//!
//! [`mod@file`] is what can be written, [`read`] turns it into a [`Scenario`] and says what is
//! wrong with it, [`ScenarioRun`] runs one and gives its [`ScenarioFigures`].
//! `docs/simulation.md` describes the format.

mod feedback;
pub mod figures;
pub mod file;
mod read;
pub(crate) mod recorded;
mod run;
mod scheduler;
mod task;
pub mod timeline;

mod jobs;

use onbeat_decide::predictor::{BuildPredictor, Parameters};
use onbeat_lfspp::reference::ReferenceController;
use onbeat_model::{Ladder, Name, Span};
use serde::Deserialize;

use crate::machine::Cpus;
use crate::policy::linux::{Class, Config};
use crate::workload::Workload;

pub use figures::ScenarioFigures;
pub use jobs::JobWriter;
pub use read::{ScenarioError, parse, read};
pub use recorded::parse_demands;
pub use run::{Outputs, ScenarioRun};
pub use scheduler::ScenarioScheduler;
pub use timeline::ScenarioTimeline;

#[derive(Clone, Debug)]
pub struct Scenario {
    pub seed: u64,
    pub duration: Span,
    pub cpus: Cpus,
    pub scheduler: ScenarioScheduler,
    pub config: Config,
    pub power: Power,
    /// The tasks as they were written; each stands for one task or several.
    pub groups: Vec<TaskGroup>,
    pub onbeat: Option<LoopSettings>,
    /// A controller of the papers does, in its place.
    pub feedback: Option<ReferenceController>,
}

#[derive(Clone, Debug)]
pub struct TaskGroup {
    pub name: Name,
    pub count: usize,
    pub class: Class,
    pub nice: i8,
    /// The share of their jobs that are to meet their deadline, for a policy that asks.
    pub rho: Option<f64>,
    /// The domain of the CPUs that they run on.
    pub domain: usize,
    /// Their jobs; each draws from a random sequence of its own.
    pub workload: Workload,
    /// The main loop may keep them on the beat.
    pub tracked: bool,
}

#[derive(Clone, Copy, Debug)]
pub struct LoopSettings {
    /// How budgets are predicted.
    pub predictor: BuildPredictor,
    pub parameters: Parameters,
    pub sets_speed: bool,
    /// Its reservations are ceilings, too.
    pub is_hard: bool,
}

/// How much power a CPU draws, as a share of what it draws when busy at its highest speed.
///
/// Busy at speed f: `fixed + (1 - fixed) * (f / f_max)^exponent`; idle: `idle`. With `fixed` zero
/// and an exponent of 3 this is the model of GRACE-OS, section 4.3 (eq. 13).
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Power {
    /// The part that does not depend on the speed.
    pub fixed: f64,
    /// How the rest grows with the speed.
    pub exponent: f64,
    /// When there is nothing to run.
    pub idle: f64,
    /// An idle CPU draws what a busy one does at its speed, as in the tables of GRACE-OS: its eq.
    /// 13 looks at the speed alone. Then `idle` does not count.
    pub idle_at_speed: bool,
}

impl Default for Power {
    fn default() -> Self {
        Self {
            fixed: 0.0,
            exponent: 3.0,
            idle: 0.0,
            idle_at_speed: false,
        }
    }
}

impl Power {
    pub fn busy(&self, ratio: f64) -> f64 {
        self.fixed + (1.0 - self.fixed) * ratio.powf(self.exponent)
    }
}

impl Scenario {
    pub fn tasks(&self) -> usize {
        self.groups.iter().map(|group| group.count).sum()
    }

    /// The speeds that can be set, if there is more than one.
    fn ladder(&self) -> Option<Ladder> {
        let highest = self.cpus.highest();
        let speeds = self.cpus.speeds.speeds();
        let ladder = Ladder::new(speeds.filter(|&speed| speed <= highest))?;
        (ladder.lowest() < ladder.highest()).then_some(ladder)
    }
}

#[cfg(test)]
mod tests;
