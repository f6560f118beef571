//! The vocabulary of onbeat, and its two seams to the world.
//!
//! Every other crate speaks in these words: a [`Sensor`] hears [`Event`]s of [`Task`]s, among them
//! [`Burst`]s and what programs say by [`Mark`]s; inference finds the [`Rhythm`] in them, cuts them
//! into [`Job`]s and keeps their [`Demand`]; a decision is a [`Reservation`] for a task; an
//! [`Actuator`] puts it in force.
//!
//! Nothing here reads a clock, makes a system call or allocates a thread. Times are data.

mod actuator;
mod cgroup;
mod event;
mod feature;
mod job;
mod reservation;
mod rhythm;
mod sensor;
mod speed;
mod task;
mod time;

pub use actuator::{Actuator, Boost, Capacity, Refusal, Speeds, Standing};
pub use cgroup::Cgroup;
pub use event::{Burst, Event, Mark, Said};
pub use feature::{Feature, Support};
pub use job::{Demand, Job};
pub use reservation::{Bandwidth, Reservation, ReservationError};
pub use rhythm::Rhythm;
pub use sensor::{Flow, Origin, RunningProgram, Sensor};
pub use speed::{Ladder, Speed};
pub use task::{Follow, Name, Stat, Task, TaskId};
pub use time::{Instant, ParseSpanError, Quantiles, Span};
