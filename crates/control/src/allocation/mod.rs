//! From a thread's demand to what it is to have: requests, and how they are arbitrated.
//!
//! ```text
//!  demand ──wanted──▶ consider ──▶ requests ──arbitrate──▶ adjustments
//! ```
//!
//! Nothing in this folder knows threads or the actuator: the run loop passes the adjustments to
//! `enforcement`, one after the other.
//!
//! A server whose period is the task's own needs the least bandwidth and forgives most error
//! (LFS++, section 4 and Fig. 1). Where the kernel does not take that period, a whole part or a
//! whole multiple of it comes next.

pub(crate) mod arbiter;

use onbeat_model::{Bandwidth, Capacity, Reservation, Span};

use crate::estimation::JobDemand;

/// What each period of a server gets beyond the job's own runtime: the kernel charges what it does
/// around a job, and on a busy machine that differs from job to job.
const MARGIN: Span = Span::from_us(20);
/// A stage has other work, too: the least share of its period.
const LEAST_OF_STAGE: f64 = 0.05;

pub(crate) fn bandwidth(reservation: Option<Reservation>) -> Bandwidth {
    reservation.map_or(Bandwidth::ZERO, |r| r.bandwidth())
}

/// The server period for a task's period, and how the job's runtime changes with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Fit {
    period: Span,
    multiply: u64,
    divide: u64,
}

fn fit(period: Span, capacity: &Capacity) -> Fit {
    let ns = period.as_ns().max(1);
    let shortest = capacity.shortest_period.as_ns().max(1);
    let longest = capacity.longest_period.as_ns().max(shortest);
    let (multiply, divide) = if ns > longest {
        (1, ns.div_ceil(longest))
    } else if ns < shortest {
        (shortest.div_ceil(ns), 1)
    } else {
        (1, 1)
    };
    Fit {
        period: Span::from_ns((ns.saturating_mul(multiply) / divide).clamp(shortest, longest)),
        multiply,
        divide,
    }
}

/// The reservation that gives `runtime` to each job of a task with this `period`, at least
/// `floor` in each period of the server and at most the whole of it.
fn reservation(
    runtime: Span,
    period: Span,
    floor: Span,
    capacity: &Capacity,
) -> Option<Reservation> {
    let fit = fit(period, capacity);
    let runtime = Span::from_ns(
        runtime
            .as_ns()
            .saturating_mul(fit.multiply)
            .div_ceil(fit.divide),
    );
    let runtime = (runtime + MARGIN)
        .max(floor)
        .max(capacity.shortest_runtime)
        .min(fit.period);
    Reservation::implicit(runtime, fit.period).ok()
}

/// The reservation that serves a thread's `demand`, within the `ceiling` that its owner may have
/// for it; none if that is too little.
pub(crate) fn wanted(
    demand: &JobDemand,
    ceiling: Option<Bandwidth>,
    capacity: &Capacity,
) -> Option<Reservation> {
    let floor = if demand.is_derived {
        demand.period.scale(LEAST_OF_STAGE)
    } else {
        Span::ZERO
    };
    let wanted = reservation(demand.job, demand.period, floor, capacity)?;
    within(wanted, ceiling, capacity)
}

/// `wanted` within the `ceiling`; none if that is too little for a reservation.
pub(crate) fn within(
    wanted: Reservation,
    ceiling: Option<Bandwidth>,
    capacity: &Capacity,
) -> Option<Reservation> {
    let Some(ceiling) = ceiling.filter(|&ceiling| ceiling < wanted.bandwidth()) else {
        return Some(wanted);
    };
    let runtime = ceiling.runtime_in(wanted.period());
    (runtime >= capacity.shortest_runtime)
        .then(|| Reservation::new(runtime, wanted.deadline(), wanted.period()).ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    const CAPACITY: Capacity = Capacity {
        cpus: 2,
        admissible: Bandwidth::ONE,
        shortest_runtime: Span::from_ns(1024),
        shortest_period: Span::from_us(100),
        longest_period: Span::from_secs(4),
    };

    fn server(runtime: Span, period: Span) -> (Span, Span) {
        let r = reservation(runtime, period, Span::ZERO, &CAPACITY).unwrap();
        (r.runtime() - MARGIN, r.period())
    }

    #[test]
    fn a_period_too_long_is_divided_and_one_too_short_multiplied_at_the_same_bandwidth() {
        let ms = Span::from_ms;
        assert_eq!(server(ms(900), ms(9000)), (ms(300), ms(3000)));
        let us = Span::from_us;
        assert_eq!(server(us(10), us(40)), (us(30), us(120)));
    }
}
