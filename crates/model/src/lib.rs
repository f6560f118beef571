//! The vocabulary of onbeat, and its two seams to the world.
//!
//! Every other crate speaks in these words: a [`Sensor`] hears [`Event`]s of [`Task`]s, among them
//! [`Burst`]s and what programs say by [`Mark`]s; inference finds the [`Rhythm`] in them, cuts them
//! into [`Job`]s and keeps their [`Demand`]; a decision is a [`Reservation`] for a task; an
//! [`Actuator`] puts it in force.
//!
//! Nothing here reads a clock, makes a system call or allocates a thread. Times are data.

mod actuator;
mod bandwidth;
mod boost;
mod burst;
mod cgroup;
mod demand;
mod event;
mod feature;
mod job;
mod mark;
mod quantiles;
mod reservation;
mod rhythm;
mod sensor;
mod speed;
mod stat;
mod task;
mod time;

pub use actuator::{Actuator, Capacity, Refusal, Speeds, Standing};
pub use bandwidth::Bandwidth;
pub use boost::Boost;
pub use burst::Burst;
pub use cgroup::Cgroup;
pub use demand::Demand;
pub use event::Event;
pub use feature::{Feature, Support};
pub use job::Job;
pub use mark::{Mark, Said};
pub use quantiles::Quantiles;
pub use reservation::{Reservation, ReservationError};
pub use rhythm::Rhythm;
pub use sensor::{Flow, Origin, RunningProgram, Sensor};
pub use speed::{Ladder, Speed};
pub use stat::Stat;
pub use task::{Follow, Name, Task, TaskId};
pub use time::{Instant, ParseSpanError, Span};
