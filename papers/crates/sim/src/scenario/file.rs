//! The keys of a scenario: one structure for each table of the TOML file.

use std::path::PathBuf;

use onbeat_model::Span;
use serde::Deserialize;
use toml::Spanned;

use super::Power;
use crate::policy::grace::GraceSettings;
use crate::policy::linux::Overrun;

/// A length of time with its unit, as in `"40ms"`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScenarioTime(pub Span);

impl<'de> Deserialize<'de> for ScenarioTime {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map(Self).map_err(serde::de::Error::custom)
    }
}

/// For a [`Span`] that is written so.
pub(crate) fn span<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Span, D::Error> {
    ScenarioTime::deserialize(deserializer).map(|time| time.0)
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScenarioFile {
    pub duration: Spanned<ScenarioTime>,
    /// Which random sequence; 0 if left out.
    #[serde(default)]
    pub seed: u64,
    pub policy: Option<Spanned<PolicyKey>>,
    pub grace: Option<Spanned<GraceSettings>>,
    #[serde(default)]
    pub machine: MachineTable,
    /// If there, onbeat's main loop runs on the machine.
    pub onbeat: Option<OnbeatTable>,
    /// If there, a controller of the papers as written does.
    pub feedback: Option<Spanned<Feedback>>,
    #[serde(rename = "task")]
    pub tasks: Vec<Spanned<TaskEntry>>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PolicyKey {
    #[default]
    Linux,
    /// GRACE-OS and the schemes beside it.
    Grace,
    Linux24,
    Best,
    Berate,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MachineTable {
    pub cpus: Spanned<usize>,
    pub scheduling: Scheduling,
    /// How often the scheduler's tick comes, at which budgets and slices are enforced; exactly if
    /// left out.
    pub tick: ScenarioTime,
    /// The governor of the CPUs' speed, where nothing else sets it.
    pub governor: GovernorKey,
    /// The share of each CPU that the kernel keeps for fair tasks.
    pub fair_server: Spanned<f64>,
    /// The time that going from one task to another takes.
    pub switch_cost: ScenarioTime,
    /// The same as work: the time that it takes at the highest speed.
    pub switch_work: ScenarioTime,
    /// The time that going from one speed to another takes.
    pub speed_change_cost: ScenarioTime,
    /// The same as work at the new speed.
    pub speed_change_work: ScenarioTime,
    /// The speeds of the CPUs in MHz; demands are in time at the highest.
    pub speeds_mhz: Spanned<Vec<u64>>,
    /// Every speed between the lowest and the highest can be had.
    pub continuous: bool,
    /// Runtimes of reservations count in time at the highest speed.
    pub runtimes_follow_speed: bool,
    /// How long a SCHED_RR task runs in one go.
    pub round: Spanned<ScenarioTime>,
    pub power: Power,
}

impl Default for MachineTable {
    fn default() -> Self {
        Self {
            cpus: Spanned::new(0..0, 1),
            scheduling: Scheduling::Global,
            tick: ScenarioTime::default(),
            governor: GovernorKey::default(),
            fair_server: Spanned::new(0..0, 0.0),
            switch_cost: ScenarioTime::default(),
            switch_work: ScenarioTime::default(),
            speed_change_cost: ScenarioTime::default(),
            speed_change_work: ScenarioTime::default(),
            speeds_mhz: Spanned::new(0..0, vec![1000]),
            continuous: false,
            runtimes_follow_speed: false,
            round: Spanned::new(0..0, ScenarioTime(Span::from_ms(100))),
            power: Power::default(),
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GovernorKey {
    /// The highest speed.
    #[default]
    Performance,
    /// In proportion to the bandwidth in use (GRUB-PA).
    Schedutil,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scheduling {
    /// All CPUs are one domain.
    Global,
    /// Each CPU is a domain, and each task names its own.
    Partitioned,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OnbeatTable {
    /// `percentile`, `rate`, `mean-sigma` or `binary`.
    pub predictor: Option<Spanned<String>>,
    /// It sets the speed of the CPUs, too.
    #[serde(default)]
    pub power: bool,
    /// Its reservations are ceilings, too.
    #[serde(default)]
    pub hard: bool,
}

/// `[feedback]`. A key that is left out is as in `written`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Feedback {
    /// `lfs`, `lfs++` or `adaptive`.
    pub method: String,
    /// x: how much more is asked for than predicted.
    pub spread: Option<f64>,
    /// N: how many of the last samples or jobs are looked at.
    pub window: Option<usize>,
    /// j: how many of those may need more.
    pub above: Option<usize>,
    pub sampling: Option<ScenarioTime>,
    pub server_period: Option<ScenarioTime>,
    /// After how many jobs the coding scheme of `adaptive` repeats.
    pub group: Option<usize>,
    /// alpha of the analyser of `lfs++`.
    pub alpha: Option<f64>,
    /// epsilon of the same.
    pub epsilon_hz: Option<f64>,
    /// `k_max` of the same.
    pub k_max: Option<u32>,
    /// `f_min` of the same.
    pub f_min_hz: Option<f64>,
    /// `f_max` of the same.
    pub f_max_hz: Option<f64>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaskEntry {
    pub name: String,
    #[serde(default = "one")]
    pub count: usize,
    /// On a partitioned machine: its CPU.
    pub cpu: Option<usize>,
    pub arrival: ArrivalKey,
    /// How long the first job waits.
    #[serde(default)]
    pub phase: ScenarioTime,
    /// How much later than its release a periodic job may begin.
    #[serde(default)]
    pub jitter: ScenarioTime,
    /// The demand of its jobs; may be left out where a recording tells.
    pub demand: Option<DemandKey>,
    /// When a job is due after its release; the period if left out.
    pub deadline: Option<ScenarioTime>,
    #[serde(default = "one_burst")]
    pub bursts: u32,
    /// For how long it blocks between two of them; zero: it calls `sched_yield()`.
    #[serde(default)]
    pub pause: ScenarioTime,
    /// The parameters for the policy `linux`; fair with nice 0 if left out.
    pub scheduling: Option<SchedulingKey>,
    /// The share of its jobs that are to meet their deadline. Under the policy `linux` it marks its
    /// jobs then, and says this share.
    pub rho: Option<f64>,
    /// When it says that it has missed a deadline.
    #[serde(default)]
    pub mdn: Mdn,
    /// Whether onbeat may keep it on the beat, if it runs.
    #[serde(default = "yes")]
    pub tracked: bool,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(untagged)]
pub enum Mdn {
    /// At the end of each job that is late, or never.
    WhenLate(bool),
    /// Late or not, whenever it has computed for this time.
    Often { every: ScenarioTime },
}

impl Default for Mdn {
    fn default() -> Self {
        Self::WhenLate(false)
    }
}

const fn as_different_as_usual() -> u32 {
    1000
}

const fn one() -> usize {
    1
}

const fn one_burst() -> u32 {
    1
}

const fn yes() -> bool {
    true
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ArrivalKey {
    /// On the beats of this period.
    Periodic(ScenarioTime),
    /// On the beats of this period, which begins anew where a job was late.
    Paced(ScenarioTime),
    /// At random, at this mean interval.
    Poisson(ScenarioTime),
    /// This time after the job before was done.
    After(ScenarioTime),
    /// As soon as the job before is done.
    Always,
    /// When the bursts of a recording began.
    Recorded(RecordedKey),
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum DemandKey {
    Constant(ScenarioTime),
    Uniform(ScenarioTime, ScenarioTime),
    Normal {
        mean: ScenarioTime,
        deviation: ScenarioTime,
        /// And never more than this.
        most: Option<ScenarioTime>,
    },
    Exponential(ScenarioTime),
    Frames {
        /// The mean demands of the frames of a group of pictures, in order.
        group: Vec<ScenarioTime>,
        /// The standard deviation of the logarithm of a frame's own factor.
        #[serde(default)]
        variation: f64,
        /// The same of a scene's.
        #[serde(default)]
        scene_variation: f64,
        /// How probable a new scene is after each frame.
        #[serde(default)]
        scene_change: f64,
    },
    /// Frames as the workload of the experiments has them.
    Decoder {
        mean: ScenarioTime,
        seed: u64,
        /// How different they are, in permille of the default.
        #[serde(default = "as_different_as_usual")]
        variation: u32,
    },
    /// The demands of the jobs of a recording, again and again.
    Recorded(RecordedKey),
    Endless,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordedKey {
    pub file: PathBuf,
    /// The thread's name or number; may be left out where there is one only.
    pub thread: Option<String>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum SchedulingKey {
    Deadline {
        runtime: ScenarioTime,
        period: ScenarioTime,
        /// Before this; the period if left out.
        deadline: Option<ScenarioTime>,
        #[serde(default)]
        overrun: Overrun,
        /// It may use what others leave.
        #[serde(default)]
        reclaim: bool,
    },
    Fifo(u8),
    Rr(u8),
    Nice(i8),
}

impl Default for SchedulingKey {
    fn default() -> Self {
        Self::Nice(0)
    }
}
