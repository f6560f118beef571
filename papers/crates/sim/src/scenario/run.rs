//! Runs a scenario, alone or with onbeat's main loop.

use std::io::{self, Write};

use onbeat_control::{
    AllowedMeans, Controller, Decision, EstimationSettings, Next, PowerSettings, Settings, drive,
};
use onbeat_lfspp::reference::{self, ReferenceController};
use onbeat_model::{Follow, Instant, Sensor, Span, Task, TaskId};
use onbeat_policies::{Berate, Best, Linux24, Rules, Structures};

use super::figures::{CpuFigures, ScenarioFigures, Tally};
use super::{
    JobWriter, LoopSettings, Scenario, ScenarioScheduler, ScenarioTimeline, TaskGroup, scheduler,
};
use crate::loop_adapter::{FIRST_TID, SensedEvents, SimulatedSensor, seams};
use crate::policy::Policy;
use crate::policy::grace::Grace;
use crate::policy::linux::Linux;
use crate::policy::ruled::Ruled;
use crate::{Machine, Observer};

#[derive(Default)]
pub struct Outputs {
    /// Each job as a row of CSV.
    pub jobs: Option<Box<dyn Write>>,
    pub timeline: Option<Box<dyn Write>>,
}

type Details = (
    Tally,
    (
        Option<JobWriter<Box<dyn Write>>>,
        Option<ScenarioTimeline<Box<dyn Write>>>,
    ),
);

pub struct ScenarioRun<'a> {
    scenario: &'a Scenario,
    seed: u64,
    tasks: Vec<Task>,
}

/// How much virtual time passes between two reports of progress.
const STEP: Span = Span::from_ms(100);

impl<'a> ScenarioRun<'a> {
    pub fn new(scenario: &'a Scenario) -> Self {
        let tasks = scenario
            .groups
            .iter()
            .flat_map(|group| std::iter::repeat_n(group.name, group.count));
        Self {
            scenario,
            seed: scenario.seed,
            tasks: (FIRST_TID..)
                .zip(tasks)
                .map(|(tid, comm)| Task {
                    id: TaskId::recorded(tid),
                    pid: tid,
                    comm,
                })
                .collect(),
        }
    }

    pub const fn seeded(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Runs to the end. `progress` is called now and then with the virtual time.
    pub fn run(&self, outputs: Outputs, progress: impl FnMut(Span)) -> io::Result<ScenarioFigures> {
        let names = self.names();
        let jobs = outputs
            .jobs
            .map(|output| JobWriter::new(output, names.clone()))
            .transpose()?;
        let cpus = self.scenario.cpus.count;
        let timeline = outputs
            .timeline
            .map(|output| ScenarioTimeline::new(output, cpus, names));
        let details = (Tally::of(self.scenario), (jobs, timeline));
        if let (ScenarioScheduler::Linux, Some(method)) =
            (&self.scenario.scheduler, &self.scenario.feedback)
        {
            return self.with_feedback(method, details, progress);
        }
        match (&self.scenario.scheduler, &self.scenario.onbeat) {
            (ScenarioScheduler::Linux, Some(onbeat)) => self.with_onbeat(onbeat, details, progress),
            (ScenarioScheduler::Linux, None) => self.alone(self.linux(), details, progress),
            (ScenarioScheduler::Linux24, _) => {
                self.alone(self.ruled(Linux24::default()), details, progress)
            }
            (ScenarioScheduler::Best, _) => {
                self.alone(self.ruled(Best::default()), details, progress)
            }
            (ScenarioScheduler::Berate, _) => {
                self.alone(self.ruled(Berate::default()), details, progress)
            }
            (ScenarioScheduler::Grace(settings), _) => {
                let speeds = self.scenario.cpus.speeds.clone();
                let tasks = self.each(scheduler::grace_class);
                let policy = Grace::new(settings.clone(), speeds, cpus, tasks);
                self.alone(policy, details, progress)
            }
        }
    }

    fn names(&self) -> Vec<String> {
        let groups = self.scenario.groups.iter();
        groups
            .flat_map(|group| {
                (0..group.count).map(move |number| match group.count {
                    1 => group.name.to_text(),
                    _ => format!("{}.{number}", group.name),
                })
            })
            .collect()
    }

    fn each<T: Clone>(&self, of: impl Fn(&TaskGroup) -> T) -> impl Iterator<Item = T> {
        let groups = self.scenario.groups.iter();
        groups.flat_map(move |group| std::iter::repeat_n(of(group), group.count))
    }

    fn linux(&self) -> Linux {
        let classes = self.each(|group| (group.class, group.domain));
        Linux::new(self.scenario.config.clone(), classes)
    }

    fn ruled<S: Structures>(&self, rules: Rules<S>) -> Ruled<S> {
        Ruled::new(
            rules,
            self.scenario.cpus.count,
            self.each(|group| group.nice),
        )
        .ticking(self.scenario.config.tick)
    }

    fn machine<P: Policy, O: Observer>(&self, policy: P, observer: O) -> Machine<P, O> {
        let Scenario { groups, cpus, .. } = self.scenario;
        let mut machine = Machine::new(cpus, policy, observer);
        let mut ids = self.tasks.iter();
        for (number, group) in (0_u64..).zip(groups) {
            for (member, task) in (0..group.count as u64).zip(&mut ids) {
                let workload = group
                    .workload
                    .clone()
                    .seeded(self.seed, number << 32 | member);
                machine.add(task.id, workload);
            }
        }
        machine
    }

    fn ends(&self) -> Instant {
        Instant::ZERO + self.scenario.duration
    }

    fn alone<P: Policy>(
        &self,
        policy: P,
        details: Details,
        mut progress: impl FnMut(Span),
    ) -> io::Result<ScenarioFigures> {
        let mut machine = self.machine(policy, details);
        while machine.now() < self.ends() {
            let until = (machine.now() + STEP).min(self.ends());
            machine.run_until(until);
            progress(until.since(Instant::ZERO));
        }
        self.close(machine, |details| details, None)
    }

    fn with_onbeat(
        &self,
        onbeat: &LoopSettings,
        details: Details,
        mut progress: impl FnMut(Span),
    ) -> io::Result<ScenarioFigures> {
        let observer = (SensedEvents::new(self.tasks.clone()), details);
        let machine = self.machine(self.linux(), observer);
        let ladder = if onbeat.sets_speed {
            self.scenario.ladder()
        } else {
            None
        };
        let (mut sensor, actuator) = seams(machine, self.scenario.cpus.count, ladder, self.ends());
        let mut actuator = actuator.boosting();
        if onbeat.is_hard {
            actuator = actuator.hard();
        }
        self.track(&mut sensor);
        let settings = Settings {
            estimation: EstimationSettings {
                predictor: onbeat.predictor,
                parameters: onbeat.parameters,
            },
            means: AllowedMeans {
                raises: true,
                ..AllowedMeans::default()
            },
            power: onbeat.sets_speed.then(PowerSettings::default),
            ..Settings::default()
        };
        let mut controller = Controller::new(settings, actuator);
        let mut changes = 0;
        let Ok(()) = drive(&mut sensor, &mut controller, |sensor, controller| {
            changes += controller
                .journal()
                .filter_map(Decision::on_reservation)
                .count() as u64;
            progress(sensor.now().since(Instant::ZERO));
            Next::Continue
        });
        drop(controller);
        self.close_seams(sensor, changes)
    }

    /// The papers' servers are hard (LFS++, section 3.2).
    fn with_feedback(
        &self,
        method: &ReferenceController,
        details: Details,
        mut progress: impl FnMut(Span),
    ) -> io::Result<ScenarioFigures> {
        let observer = (SensedEvents::new(self.tasks.clone()), details);
        let machine = self.machine(self.linux(), observer);
        let (mut sensor, actuator) = seams(machine, self.scenario.cpus.count, None, self.ends());
        let mut actuator = actuator.hard();
        self.track(&mut sensor);
        let Ok(changes) = reference::drive(method, &mut sensor, &mut actuator, |now| {
            progress(now.since(Instant::ZERO));
        });
        drop(actuator);
        self.close_seams(sensor, changes)
    }

    fn track<O: Observer>(&self, sensor: &mut SimulatedSensor<O>) {
        let tracked = self.each(|group| group.tracked);
        for (task, tracked) in self.tasks.iter().zip(tracked) {
            if tracked {
                let Ok(()) = sensor.track(task.id.tid, Follow::Threads);
            }
        }
    }

    fn close_seams(
        &self,
        sensor: SimulatedSensor<Details>,
        changes: u64,
    ) -> io::Result<ScenarioFigures> {
        let Some(machine) = sensor.into_machine() else {
            return Err(io::Error::other("the simulated machine is still in use"));
        };
        self.close(machine, |(_, details)| details, Some(changes))
    }

    fn close<P: Policy, O: Observer>(
        &self,
        mut machine: Machine<P, O>,
        details: impl FnOnce(O) -> Details,
        changes: Option<u64>,
    ) -> io::Result<ScenarioFigures> {
        let cpus: Vec<CpuFigures> = machine.accounts().map(CpuFigures::of).collect();
        let count = self.tasks.len();
        let executed: Vec<Span> = (0..count).map(|task| machine.executed(task)).collect();
        let late: Vec<u64> = (0..count).map(|task| machine.late(task)).collect();
        let (jobs, switches) = (machine.jobs_done(), machine.switches());
        let (_, observer) = machine.finish();
        let (mut tally, (csv, timeline)) = details(observer);
        csv.map(JobWriter::finish).transpose()?;
        timeline.map(ScenarioTimeline::finish).transpose()?;
        for (task, late) in late.into_iter().enumerate() {
            tally.late(task, late);
        }
        let full_khz = self.scenario.cpus.speeds.highest().as_khz();
        Ok(ScenarioFigures {
            seed: self.seed,
            duration_ns: self.scenario.duration,
            tasks: tally.figures(self.scenario, &executed),
            energy: cpus
                .iter()
                .map(|cpu| cpu.energy(&self.scenario.power, full_khz))
                .sum(),
            cpus,
            jobs,
            switches,
            changes,
        })
    }
}
