//! How much a server gives in a length of time, and how much a task needs of it: why a server's
//! period is to be the task's (LFS++, section 4, Fig. 1).
//!
//! Assumptions: (1) the server is schedulable, so that in each of its periods the whole runtime is
//! given by the period's end, in the worst case only at the very end; (2) a server period begins
//! with the job: a task that slept gets a new one when it wakes (the constant bandwidth server's
//! rule, section 3.2); (3) the server has no other task.

use onbeat_model::{Reservation, Span};

/// The least CPU time that `server` gives within `length` from the begin of one of its periods (the
/// supply bound function, Lehoczky et al. 1989): the runtime of each whole period, and of the last,
/// partial one what does not fit behind it.
pub fn least_supply(server: &Reservation, length: Span) -> Span {
    let period = server.period().as_ns();
    let (whole, rest) = (length.as_ns() / period, length.as_ns() % period);
    let late = server.period() - server.runtime();
    server.runtime() * whole + (Span::from_ns(rest) - late)
}

/// The least runtime with which a server of `server_period` gives every job of a task its
/// `execution` before the next one's release, `period` later; none if no runtime does, as the task
/// needs more than its period or a length is zero.
pub fn least_runtime(execution: Span, period: Span, server_period: Span) -> Option<Span> {
    if execution.is_zero() || server_period.is_zero() || execution > period {
        return None;
    }
    let (c, p, t) = (execution.as_ns(), period.as_ns(), server_period.as_ns());
    let (whole, rest) = (p / t, p % t);
    // Either the whole periods suffice by themselves, or the partial one has to help.
    let by_whole = (whole > 0).then(|| c.div_ceil(whole));
    let with_rest = (c + (t - rest)).div_ceil(whole + 1);
    let runtime = by_whole.map_or(with_rest, |by_whole| by_whole.min(with_rest));
    Some(Span::from_ns(runtime))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bandwidth that the paper's task (20 ms of every 100 ms) needs of a server of this
    /// period.
    fn bandwidth(server_period_us: u64) -> f64 {
        let server_period = Span::from_us(server_period_us);
        let runtime = least_runtime(Span::from_ms(20), Span::from_ms(100), server_period);
        runtime.unwrap().ratio(server_period)
    }

    #[test]
    fn the_papers_figure_1_the_task_s_utilisation_suffices_at_its_period_and_its_whole_parts() {
        for server_period_us in [100_000, 50_000, 25_000, 20_000, 10_000] {
            let share = bandwidth(server_period_us);
            assert!((share - 0.2).abs() < 1e-6, "{server_period_us} us: {share}");
        }
    }

    #[test]
    fn the_papers_figure_1_elsewhere_more_is_needed_and_beyond_the_period_much_more() {
        assert!((bandwidth(200_000) - 0.6).abs() < 1e-6);
        assert!((bandwidth(40_000) - 0.25).abs() < 1e-6);
        let third = bandwidth(33_333);
        assert!(third < 0.201, "{third}");
        assert!(
            (bandwidth(37_000) - 0.27).abs() < 0.005,
            "{}",
            bandwidth(37_000)
        );
    }

    #[test]
    fn the_least_runtime_is_the_first_that_supplies_enough() {
        for server_period in 1..40 {
            for period in 1..40 {
                for execution in 1..=period {
                    let [c, p, t] = [execution, period, server_period].map(Span::from_ns);
                    let enough = |runtime: &u64| {
                        let server = Reservation::implicit(Span::from_ns(*runtime), t);
                        server.is_ok_and(|server| least_supply(&server, p) >= c)
                    };
                    let slow = (1..=server_period).find(enough);
                    assert_eq!(least_runtime(c, p, t).map(Span::as_ns), slow, "{c} {p} {t}");
                }
            }
        }
    }

    #[test]
    fn what_cannot_be_served_has_no_runtime() {
        let ms = Span::from_ms;
        assert_eq!(least_runtime(ms(11), ms(10), ms(10)), None);
        assert_eq!(least_runtime(ms(0), ms(10), ms(10)), None);
        assert_eq!(least_runtime(ms(1), ms(10), Span::ZERO), None);
    }
}
