//! The loop that wires sensing, inferring, deciding and acting.
//!
//! ```text
//!  Sensor ─events─▶ estimation ─period, demand─▶ allocation ─adjustments─▶ enforcement ─▶ Actuator
//!                       ▲                            ▲                          │
//!                       └───── run_loop: threads, timers, log ◀─────────────────┘
//! ```
//!
//! Arrows go one way: each part takes what it needs, and returns what follows; the run loop alone
//! knows all of them. A part's state of a thread is in the part's own table (`BySlot`).
//!
//! [`Controller`] is everything between the two seams, and [`drive`] turns it until there is
//! nothing more to hear. Neither knows whether sensor and actuator are the live kernel, a recording
//! or a simulated machine; given the same events and answers, it decides the same.
//!
//! A job costs a few look-ups and no system call. A request changes only when hysteresis lets it,
//! and the supervisor looks at all requests only when they do not fit; of 100 or more that do not,
//! every 500 ms. Work that goes through all threads has a period of its own: pipelines and
//! protection every 250 ms.

mod allocation;
mod drive;
mod dry_run;
mod enforcement;
mod estimation;
mod need;
mod pipeline;
mod protection;
mod report;
mod run_loop;
mod settings;
mod speed;
mod task;
mod timer;

pub use drive::{Next, begin, drive};
pub use dry_run::DryRun;
pub use pipeline::Partner;
pub use protection::RAISED;
pub use report::account::{DoneJob, JobCounts, MarkFigures, TimeHistogram};
pub use report::application::{Application, Means};
pub use report::decision::{BoostEntry, BoostWhat, Decision, Entry, What, Why};
pub use report::exited::Sums;
pub use report::{
    Present, Progress, Report, ReservationFigures, ServedBy, Stage, State, ThreadReport,
};
pub use run_loop::Controller;
pub use settings::{
    AllocationSettings, AllowedMeans, EstimationSettings, Parties, Party, PipelineSettings,
    PowerSettings, Settings, SpeedRule, Treat, Treatment,
};
pub use speed::{AtSpeed, SpeedEntry, SpeedWhat, SpeedWhy};
