//! Common to experiments on a simulated machine of one CPU: the CPU, hogs, and when jobs ended.

use std::collections::BTreeMap;

use onbeat_model::{Instant, Span};
use onbeat_sim::loop_adapter::machine_of;
use onbeat_sim::observe::Completion;
use onbeat_sim::policy::linux::{Class, Config, Fair, Linux};
use onbeat_sim::workload::{Arrival, Demand, JobSpec};
use onbeat_sim::{Cpus, Machine, Observer, Work, Workload};

/// How many there are. With one program beside them its fair share is a fifth of the CPU.
pub(crate) const HOGS: usize = 4;

pub(crate) fn one_cpu() -> Cpus {
    Cpus::of_one_speed(1)
}

/// A task that computes without end from `from` on.
pub(crate) fn hog(from: Span) -> Workload {
    let arrival = Arrival::After {
        pause: Span::ZERO,
        first: Some(Instant::ZERO + from),
    };
    Workload::new(arrival, Demand::Constant(Work::ENDLESS))
}

/// A machine of one CPU with these programs, and [`HOGS`] hogs from a time on.
pub(crate) fn machine<O: Observer>(
    programs: impl IntoIterator<Item = (Class, Workload)>,
    hogs_from: Span,
    observer: O,
) -> Machine<Linux, O> {
    let fair = Class::Fair(Fair::nice(0));
    let hogs = std::iter::repeat_with(|| (fair, hog(hogs_from))).take(HOGS);
    machine_of(
        Config::global(1),
        programs.into_iter().chain(hogs),
        observer,
    )
}

/// The nearest-rank quantile of the jobs' demands; zero if there are none.
pub(crate) fn quantile<'a>(jobs: impl Iterator<Item = &'a JobSpec>, rho: f64) -> Span {
    let mut demands: Vec<Span> = jobs.map(|job| job.demand.as_span()).collect();
    demands.sort_unstable();
    let rank = (rho * demands.len() as f64).ceil() as usize;
    let found = demands.get(rank.saturating_sub(1));
    found.copied().unwrap_or_default()
}

/// When the jobs of the first task ended, by their release.
#[derive(Debug, Default)]
pub(crate) struct JobEnds(pub(crate) BTreeMap<Instant, Instant>);

impl Observer for JobEnds {
    fn job(&mut self, job: &Completion) {
        if job.task == 0 {
            self.0.insert(job.release, job.ended);
        }
    }
}
