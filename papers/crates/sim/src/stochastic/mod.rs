//! Budgets and speeds from the distribution of what jobs demand, as GRACE-OS has them.
//!
//! A job that must meet its deadline with probability rho needs the budget that a share rho of jobs
//! stay within ([`Histogram::budget`], eq. 2). The time for it is the task's part of the whole CPU
//! ([`time_allocations`], eq. 4). Within that time a job begins slowly and speeds up as it goes on,
//! because most jobs end before the fast part ([`schedule`], eq. 12). [`planner`] does it for all
//! tasks while they run.
//!
//! Demands are in time at the CPU's highest speed: cycles over the highest frequency.

pub mod histogram;
pub mod planner;
pub mod schedule;

use onbeat_model::Span;

pub use histogram::{Budget, Histogram};
pub use planner::Planner;
pub use schedule::Schedule;

/// The time that each task may take for its budget in every period, if all together take the whole
/// CPU: the budget over the sum of all budgets over periods (GRACE-OS, eq. 4). For a task without a
/// period or where nothing is demanded, the budget itself.
///
/// `tasks` are budgets and periods. Where they do not fit even at the highest speed, a time is
/// shorter than its budget.
pub fn time_allocations(tasks: &[(Span, Span)]) -> Vec<Span> {
    let use_of = |&(budget, period): &(Span, Span)| budget.ratio(period);
    let all: f64 = tasks.iter().map(use_of).sum();
    tasks
        .iter()
        .map(|&(budget, _)| {
            if all > 0.0 {
                // Rounded down: all together must not take more than there is.
                Span::from_ns((budget.as_ns() as f64 / all) as u64)
            } else {
                budget
            }
        })
        .collect()
}

/// The lowest speed at which all budgets fit, as a ratio of the highest (GRACE-OS, section 2.4: the
/// uniform speed, eq. 3 as a share).
pub fn uniform_speed(tasks: &[(Span, Span)]) -> f64 {
    tasks
        .iter()
        .map(|&(budget, period)| budget.ratio(period))
        .sum()
}

#[cfg(test)]
mod tests;
