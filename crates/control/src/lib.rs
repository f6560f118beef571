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

mod allocation;
mod batching;
mod drive;
mod dry_run;
mod enforcement;
mod estimation;
mod explicit;
mod outcomes;
mod pipeline;
mod probations;
mod protection;
mod report;
mod run_loop;
mod settings;
mod speed;
mod task;
mod timer;

pub use drive::{Next, drive};
pub use dry_run::DryRun;
pub use pipeline::{Partner, Stage};
pub use protection::boost::{BoostEntry, BoostWhat, BoostWhy};
pub use report::decision::{Entry, What};
pub use report::exited::Sums;
pub use report::histogram::Times;
pub use report::jobs::Done;
pub use report::reason::Why;
pub use report::state::State;
pub use report::view::View;
pub use report::{Report, ResponseTimes, ThreadReport};
pub use run_loop::Controller;
pub use settings::{
    Method, Parties, Party, PipelineSettings, PowerSettings, Settings, SpeedRule, Treat, Treatment,
};
pub use speed::account::{AtSpeed, SpeedEntry, SpeedWhat, SpeedWhy};
