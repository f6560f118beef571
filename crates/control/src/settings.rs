//! Everything that can be set about the loop.

use std::sync::mpsc::Sender;

use onbeat_decide::power::Band;
use onbeat_decide::predictor::{BuildPredictor, Parameters, Percentile};
use onbeat_decide::supervisor::Limits;
use onbeat_model::{Bandwidth, Job, Span, Task, TaskId};

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Treatment {
    /// How much it counts when not everything fits; 1 is normal.
    pub weight: f64,
    /// The most that it may take, if that is less than what any thread may.
    pub cap: Option<Bandwidth>,
}

impl Default for Treatment {
    fn default() -> Self {
        Self {
            weight: 1.0,
            cap: None,
        }
    }
}

pub type Treat = Box<dyn Fn(&Task) -> Treatment>;

/// With which threads a thread may share a pipeline, and which account pays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Party {
    /// The account that pays. Each has a share of what can be watched and served.
    pub payer: u32,
    /// The owner, if it is one user: a pipeline's threads have one owner.
    pub owner: Option<u32>,
    /// Set by an administrator for all users: it may join any pipeline.
    pub is_everybodys: bool,
    /// The first process of the application that it belongs to, if that is not its own.
    pub application: Option<u32>,
}

impl Default for Party {
    fn default() -> Self {
        Self {
            payer: 0,
            owner: Some(0),
            is_everybodys: false,
            application: None,
        }
    }
}

impl Party {
    pub(crate) fn may_work_for(self, head: Self) -> bool {
        self.is_everybodys || (self.owner.is_some() && self.owner == head.owner)
    }
}

pub type Parties = Box<dyn Fn(TaskId) -> Party>;

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SpeedRule {
    /// The utilisation of the busiest CPU is kept in this band (LFS++, section 6.3).
    Band(Band),
    /// The lowest speed at which all budgets fit, and this share of all CPUs at their highest speed
    /// for best-effort programs (GRACE-OS, sections 2.4 and 4.4).
    Uniform { best_effort: f64 },
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PowerSettings {
    pub rule: SpeedRule,
    pub sampling: Span,
}

impl Default for PowerSettings {
    /// Once a second, as powernowd does.
    fn default() -> Self {
        Self {
            rule: SpeedRule::Band(Band::default()),
            sampling: Span::from_secs(1),
        }
    }
}

/// Which threads are served without a request, because they work on the path of one that is kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PipelineSettings {
    /// Processes whose threads never are: onbeat's own.
    pub outsiders: Vec<u32>,
}

#[derive(Clone, Copy, Debug)]
pub struct EstimationSettings {
    pub predictor: BuildPredictor,
    pub parameters: Parameters,
}

impl Default for EstimationSettings {
    fn default() -> Self {
        Self {
            predictor: Percentile::build,
            parameters: Parameters::default(),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AllocationSettings {
    /// The most that all reservations together may take, as a share of all CPUs.
    pub total: f64,
    pub per_task: Bandwidth,
    /// The bandwidth that each periodic thread gets even if not everything fits.
    pub minimum: Bandwidth,
}

impl Default for AllocationSettings {
    fn default() -> Self {
        Self {
            total: Limits::DEFAULT_TOTAL,
            per_task: Bandwidth::from_cpus(Limits::DEFAULT_PER_TASK),
            minimum: Bandwidth::from_cpus(0.01),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AllowedMeans {
    /// Also without need, as LFS++ does. If not, it takes a sensor that tells of waits.
    pub always: bool,
    pub reserves: bool,
    /// Threads without a reservation are raised while their application needs that. It takes a
    /// sensor that tells who woke a thread.
    pub raises: bool,
    /// By a real-time priority where the kernel permits it; if not, by a nice value and a slice.
    pub priority: bool,
}

impl Default for AllowedMeans {
    fn default() -> Self {
        Self {
            always: true,
            reserves: true,
            raises: false,
            priority: true,
        }
    }
}

pub struct Settings {
    pub estimation: EstimationSettings,
    pub allocation: AllocationSettings,
    pub means: AllowedMeans,
    pub treat: Treat,
    /// Whether the threads that work on the path of those that are kept are found and served with
    /// them.
    pub pipelines: Option<PipelineSettings>,
    pub parties: Parties,
    pub power: Option<PowerSettings>,
    pub jobs: Option<Sender<Job>>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            estimation: EstimationSettings::default(),
            allocation: AllocationSettings::default(),
            means: AllowedMeans::default(),
            treat: Box::new(|_| Treatment::default()),
            pipelines: None,
            parties: Box::new(|_| Party::default()),
            power: None,
            jobs: None,
        }
    }
}
