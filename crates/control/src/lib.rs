//! The loop that wires sensing, inferring, deciding and acting.
//!
//! ```text
//!  Sensor ──events──▶ Thread: Analyser ─▶ Lock: Tracker, Separator, Profiler, Predictor
//!                                                              │ wish, when it is worth one
//!  Actuator ◀──reservations── enforce ◀──grants── Claims: supervisor
//! ```
//!
//! [`Controller`] is everything between the two seams, and [`drive`] turns it until there is nothing
//! more to hear. Neither knows whether sensor and actuator are the live kernel, a recording or a
//! simulated machine; given the same events and answers, it decides the same.
//!
//! What it costs is what it was built around: work is done per event and per change, never per
//! thread and turn. A job costs a few look-ups and no system call; a wish goes to the supervisor only
//! when hysteresis lets it pass, and the supervisor looks at all threads only when not all fits; of a crowd that does not all
//! fit, in rounds.

mod asked;
mod attempts;
mod backlog;
mod boosts;
mod claims;
mod clock;
mod controller;
mod drive;
mod dry_run;
mod ended;
mod enforce;
mod figures;
mod journal;
mod looks;
mod outcomes;
mod owed;
mod pace;
mod partitions;
mod pipelines;
mod power;
mod protection;
mod recent;
mod report;
mod roster;
mod rounds;
mod server;
mod settings;
mod settle;
mod speeds;
mod squeeze;
mod starving;
mod status;
mod task;
mod timers;
mod times;
mod trials;
mod view;
mod why;
mod wishes;

pub use boosts::{BoostEntry, BoostWhat, BoostWhy};
pub use controller::Controller;
pub use drive::{Next, drive};
pub use dry_run::DryRun;
pub use ended::Sums;
pub use journal::{Entry, What};
pub use pipelines::{Partner, Stage};
pub use recent::Done;
pub use report::{Report, ResponseTimes, ThreadReport};
pub use settings::{
    Method, Parties, Party, PipelineSettings, PowerSettings, Settings, SpeedRule, Treat, Treatment,
};
pub use speeds::{AtSpeed, SpeedEntry, SpeedWhat, SpeedWhy};
pub use status::State;
pub use times::Times;
pub use view::View;
pub use why::Why;
