//! Which changes are worth a system call: of a request, before `decide`'s hysteresis counts what a
//! small one would save, and of a reservation that follows from others' requests.

use onbeat_model::Reservation;

use super::bandwidth;

use crate::tuning::requests::{MARGIN, SAME_SERVER, TRIFLE_CPUS, WORTH_RAISING};

/// True if both serve a job equally well, and cost about the same.
pub(super) fn is_trifle(former: Reservation, wanted: Reservation) -> bool {
    let (a, b) = (former.bandwidth(), wanted.bandwidth());
    same_server(former, wanted)
        && wanted.runtime() <= former.runtime() + MARGIN
        && (a - b).max(b - a).as_cpus() < TRIFLE_CPUS
}

/// True if both have the same period and differ by less than the least raise.
pub(crate) fn is_small(held: Option<Reservation>, target: Option<Reservation>) -> bool {
    let (Some(held), Some(target)) = (held, target) else {
        return false;
    };
    let (before, after) = (held.bandwidth().as_cpus(), target.bandwidth().as_cpus());
    same_server(held, target) && (after - before).abs() < before * WORTH_RAISING
}

/// True for a raise that is worth it, although the thread's own request has not changed.
pub(super) fn is_worth_raising(held: Option<Reservation>, target: Option<Reservation>) -> bool {
    let held = bandwidth(held).as_cpus();
    bandwidth(target).as_cpus() > held * (1.0 + WORTH_RAISING)
}

/// The thread has another period, or gets its first reservation or none.
pub(super) fn is_another(held: Option<Reservation>, target: Option<Reservation>) -> bool {
    match (held, target) {
        (Some(held), Some(target)) => !same_server(held, target),
        _ => true,
    }
}

fn same_server(former: Reservation, wanted: Reservation) -> bool {
    former.period().abs_diff(wanted.period()) * SAME_SERVER <= former.period()
}

#[cfg(test)]
mod tests {
    use onbeat_model::Span;

    use super::*;

    fn of_us(runtime: u64, period: u64) -> Reservation {
        Reservation::implicit(Span::from_us(runtime), Span::from_us(period)).unwrap()
    }

    #[test]
    fn a_thousandth_of_a_cpu_less_is_a_trifle_and_more_is_not() {
        let former = of_us(10_000, 100_000);
        assert!(is_trifle(former, of_us(9_910, 100_000)));
        assert!(!is_trifle(former, of_us(9_890, 100_000)));
    }

    #[test]
    fn a_period_that_drifts_by_a_hundredth_is_another_server() {
        let held = Some(of_us(10_000, 100_000));
        assert!(!is_another(held, Some(of_us(10_000, 100_900))));
        assert!(is_another(held, Some(of_us(10_000, 101_100))));
    }
}
