//! What experiments on a simulated machine of one CPU have in common: the CPU, hogs, and when jobs
//! ended.

use std::collections::BTreeMap;

use onbeat_model::{Instant, Name, Span, Task, TaskId};
use onbeat_sim::loop_adapter::FIRST_TID;
use onbeat_sim::observe::Completion;
use onbeat_sim::workload::{Arrival, Demand};
use onbeat_sim::{Cpus, Observer, Work, Workload};

/// The one CPU.
pub(crate) fn one_cpu() -> Cpus {
    Cpus::of_one_speed(1)
}

/// The first `count` tasks of a machine, each a process.
pub(crate) fn tasks(count: usize) -> Vec<Task> {
    let tids = (FIRST_TID..).take(count);
    tids.map(|tid| Task {
        id: TaskId::recorded(tid),
        pid: tid,
        comm: Name::from("program"),
    })
    .collect()
}

/// A task that computes without end from `from` on.
pub(crate) fn hog(from: Span) -> Workload {
    let arrival = Arrival::After {
        pause: Span::ZERO,
        first: Some(Instant::ZERO + from),
    };
    Workload::new(arrival, Demand::Constant(Work::ENDLESS))
}

/// When the jobs of the first task ended, by their release.
#[derive(Debug, Default)]
pub(crate) struct Ends(pub(crate) BTreeMap<Instant, Instant>);

impl Observer for Ends {
    fn job(&mut self, job: &Completion) {
        if job.task == 0 {
            self.0.insert(job.release, job.ended);
        }
    }
}
