//! The behaviour of a task, and its parameters for Linux, from the words of the file; the error
//! says what to write instead.

use std::path::Path;
use std::sync::Arc;

use onbeat_model::{Instant, Reservation, Span};

use super::file;
use super::recorded::{self, RecordedBursts};
use crate::Work;
use crate::policy::linux::{Class, DeadlineClass, Fair, Fixed, Order};
use crate::workload::{Arrival, Demand, Film, Frames, Notifies};

pub(super) fn above_zero(what: &str, time: file::ScenarioTime) -> Result<Span, String> {
    if time.0.is_zero() {
        return Err(format!(
            "{what} is nothing: write a time above zero, as in \"20ms\""
        ));
    }
    Ok(time.0)
}

pub(super) fn arrival(
    task: &file::TaskEntry,
    trace: Option<RecordedBursts>,
) -> Result<Arrival, String> {
    let first = Instant::ZERO + task.phase.0;
    Ok(match (&task.arrival, trace) {
        (file::ArrivalKey::Periodic(period), _) => Arrival::Periodic {
            period: above_zero("its period", *period)?,
            next: first,
            jitter: task.jitter.0,
        },
        (file::ArrivalKey::Paced(period), _) => Arrival::Paced {
            period: above_zero("its period", *period)?,
            next: first,
            timer: Span::ZERO,
        },
        (file::ArrivalKey::Poisson(mean), _) => Arrival::Poisson {
            mean: above_zero("its mean time between jobs", *mean)?,
            last: first,
        },
        (file::ArrivalKey::After(pause), _) => Arrival::After {
            pause: above_zero("its pause", *pause)?,
            first: Some(first),
        },
        (file::ArrivalKey::Recorded(_), Some(trace)) => Arrival::Recorded {
            releases: trace.releases.iter().map(|&at| at + task.phase.0).collect(),
            over: 0,
        },
        _ => Arrival::Always,
    })
}

pub(super) fn demand(demand: &file::DemandKey, folder: &Path) -> Result<Demand, String> {
    Ok(match demand {
        file::DemandKey::Constant(time) => Demand::constant(above_zero("its demand", *time)?),
        file::DemandKey::Uniform(least, most) if least.0 <= most.0 => {
            Demand::Uniform(least.0, most.0)
        }
        file::DemandKey::Uniform(..) => {
            return Err(
                "a uniform demand goes from the least to the most, as in [\"2ms\", \"4ms\"]".into(),
            );
        }
        file::DemandKey::Normal {
            mean,
            deviation,
            most,
        } => Demand::Normal {
            mean: above_zero("the mean of its demand", *mean)?,
            deviation: deviation.0,
            most: most.map_or(Span::MAX, |most| most.0),
        },
        file::DemandKey::Exponential(mean) => {
            Demand::Exponential(above_zero("its mean demand", *mean)?)
        }
        file::DemandKey::Frames {
            group,
            variation,
            scene_variation,
            scene_change,
        } => {
            let group: Arc<[Span]> = group.iter().map(|time| time.0).collect();
            if group.is_empty() {
                return Err(
                    "a group needs a frame or more, as in group = [\"9ms\", \"4ms\"]".into(),
                );
            }
            Demand::Frames(Frames::new(
                group,
                *variation,
                *scene_variation,
                *scene_change,
            ))
        }
        file::DemandKey::Decoder {
            mean,
            seed,
            variation,
        } => {
            let film = Film::of_seed(*seed).varied(*variation);
            Demand::Decoder(above_zero("the mean of its demand", *mean)?, film)
        }
        file::DemandKey::Recorded(recorded) => {
            trace_demand(&recorded::load(folder, recorded)?, true)
        }
        file::DemandKey::Endless => Demand::Constant(Work::ENDLESS),
    })
}

pub(super) fn notifies(task: &file::TaskEntry) -> Result<Notifies, String> {
    Ok(match task.mdn {
        file::Mdn::WhenLate(false) => Notifies::Never,
        file::Mdn::WhenLate(true) => Notifies::WhenLate,
        file::Mdn::Often { every } => {
            let every = above_zero("the time between two of its notifications", every)?;
            Notifies::Every(Work::at_full_speed(every))
        }
    })
}

pub(super) fn trace_demand(trace: &RecordedBursts, repeat: bool) -> Demand {
    Demand::Recorded {
        demands: Arc::clone(&trace.demands),
        over: 0,
        repeat,
    }
}

/// The parameters of a task for Linux.
pub(super) fn class(class: &file::SchedulingKey) -> Result<Class, String> {
    let fixed = |priority: u8, order| {
        if (1..=99).contains(&priority) {
            Ok(Class::Fixed(Fixed { priority, order }))
        } else {
            Err(format!(
                "there is no priority {priority}: write 1 to 99, the highest first served"
            ))
        }
    };
    match *class {
        file::SchedulingKey::Fifo(priority) => fixed(priority, Order::Fifo),
        file::SchedulingKey::Rr(priority) => fixed(priority, Order::RoundRobin),
        file::SchedulingKey::Nice(nice) if (-20..=19).contains(&nice) => {
            Ok(Class::Fair(Fair::nice(nice)))
        }
        file::SchedulingKey::Nice(nice) => Err(format!("there is no nice {nice}: write -20 to 19")),
        file::SchedulingKey::Deadline {
            runtime,
            period,
            deadline,
            overrun,
            reclaim,
        } => {
            let deadline = deadline.unwrap_or(period).0;
            let reservation = Reservation::new(runtime.0, deadline, period.0);
            Ok(Class::Deadline(DeadlineClass {
                reservation: reservation.map_err(|error| error.to_string())?,
                overrun,
                reclaim,
            }))
        }
    }
}
