//! Common to experiments on a simulated machine of one CPU: the CPU, hogs, and when jobs ended.

use std::collections::BTreeMap;

use onbeat_control::{Controller, Next, Settings, drive};
use onbeat_model::{Actuator, Follow, Instant, Name, Sensor, Span, Task, TaskId};
use onbeat_sim::loop_adapter::{FIRST_TID, SensedEvents, SimulatedActuator, seams};
use onbeat_sim::observe::Completion;
use onbeat_sim::policy::linux::{Class, Config, Fair, Linux};
use onbeat_sim::workload::{Arrival, Demand, JobSpec};
use onbeat_sim::{Cpus, Machine, Observer, Work, Workload};

/// How many there are. With one program beside them its fair share is a fifth of the CPU.
pub(crate) const HOGS: usize = 4;

pub(crate) fn one_cpu() -> Cpus {
    Cpus::of_one_speed(1)
}

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

/// A machine of one CPU with these programs, and [`HOGS`] hogs from a time on.
pub(crate) fn machine<O: Observer>(
    programs: impl IntoIterator<Item = (Class, Workload)>,
    hogs_from: Span,
    observer: O,
) -> Machine<Linux, O> {
    let fair = Class::Fair(Fair::nice(0));
    let hogs = std::iter::repeat_with(|| (fair, hog(hogs_from))).take(HOGS);
    let (classes, workloads): (Vec<Class>, Vec<Workload>) =
        programs.into_iter().chain(hogs).unzip();
    let linux = Linux::new(
        Config::global(1),
        classes.into_iter().map(|class| (class, 0)),
    );
    let mut machine = Machine::new(&one_cpu(), linux, observer);
    for (tid, workload) in (FIRST_TID..).zip(workloads) {
        machine.add(TaskId::recorded(tid), workload);
    }
    machine
}

/// Runs `machine` until `ends` under onbeat's loop, which is pointed at its first `kept` programs
/// alone. `look` is called at each of its turns.
pub(crate) fn under_onbeat<O: Observer, A: Actuator>(
    machine: Machine<Linux, (SensedEvents, O)>,
    kept: usize,
    ends: Instant,
    settings: Settings,
    how: impl FnOnce(SimulatedActuator<O>) -> A,
    mut look: impl FnMut(Instant, &Controller<A>),
) -> O {
    let (mut sensor, actuator) = seams(machine, 1, None, ends);
    for task in tasks(kept) {
        let Ok(()) = sensor.track(task.id.tid, Follow::Threads);
    }
    let mut controller = Controller::new(settings, how(actuator));
    let Ok(()) = drive(&mut sensor, &mut controller, |sensor, controller| {
        look(sensor.now(), controller);
        Next::Continue
    });
    drop(controller);
    let machine = sensor.into_machine().expect("the actuator is gone");
    machine.finish().1.1
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
