//! Programs side by side on one simulated CPU, under each scheduler.

use onbeat_control::{Controller, Next, Settings, drive};
use onbeat_model::{Follow, Instant, Sensor, Span, TaskId};
use onbeat_policies::{Berate, Best, Linux24, Rules, best};
use onbeat_sim::loop_adapter::{FIRST_TID, SensedEvents, SimulatedActuator, seams};
use onbeat_sim::observe::{Completion, Stretch};
use onbeat_sim::policy::linux::{Class, Config, Fair, Linux};
use onbeat_sim::policy::ruled::Ruled;
use onbeat_sim::workload::{Arrival, Demand, Film, Notifies};
use onbeat_sim::{Machine, Observer, Policy, Workload};

use super::paper::Program;
use super::{Outcome, SAMPLE, Scheduler, VARIATION};
use crate::simulated::{one_cpu, tasks};

#[derive(Clone, Copy, Debug)]
pub(crate) struct Setting {
    pub(crate) seed: u64,
    /// How different its frames are, in permille of srtgen's.
    pub(crate) variation: u32,
    /// Their timers fire at multiples of this alone; zero: exactly.
    pub(crate) timer: Span,
}

impl Setting {
    /// Runs with this number, and everything else as in the paper's figures.
    pub(crate) fn of_seed(seed: u64) -> Self {
        Self {
            seed,
            variation: VARIATION,
            timer: Span::ZERO,
        }
    }
}

/// The work of `program` as the `place`th of a run, which says `mdn()` as given.
pub(crate) fn workload(
    program: Program,
    setting: Setting,
    place: u64,
    notifies: Notifies,
) -> Workload {
    let period = program.period();
    let Program::Srt(_, permille) = program else {
        return Workload::new(Arrival::Always, Demand::constant(period)).notifying(notifies);
    };
    let Setting {
        seed,
        variation,
        timer,
        ..
    } = setting;
    let mean = Span::from_ns(period.as_ns() * permille / 1000);
    let arrival = Arrival::Paced {
        period,
        // Elsewhere between the clock's ticks in each run.
        next: Instant::from_ns(period.as_ns() * (seed * 37 % 100) / 100),
        timer,
    };
    let frames = Film::of_seed(seed * 16 + place).varied(variation);
    Workload::new(arrival, Demand::Decoder(mean, frames)).notifying(notifies)
}

pub(crate) fn run(scheduler: Scheduler, programs: Vec<Workload>, duration: Span) -> Vec<Outcome> {
    let count = programs.len();
    let run = Run { programs, duration };
    let fair = |slice| fair(slice, count);
    let eevdf = || fair(Span::from_us(700));
    match scheduler {
        // Its quanta end at the ticks of 10 ms that its rules count.
        Scheduler::Linux24 | Scheduler::Linux24Hz100 => {
            run.alone(ruled(Linux24::default(), count), |_| {})
        }
        Scheduler::Best => run.alone(ruled(Best::default(), count), |_| {}),
        Scheduler::BestMeasuring => run.alone(ruled(measuring(), count), |_| {}),
        Scheduler::Berate | Scheduler::BerateHz100 => {
            let berate = ruled(Berate::default(), count).ticking(scheduler.tick());
            run.alone(berate, |_| {})
        }
        Scheduler::Eevdf => run.alone(eevdf(), |_| {}),
        Scheduler::EevdfShort => run.alone(fair(Span::from_us(100)), |_| {}),
        Scheduler::Onbeat => run.with_onbeat(eevdf(), |actuator| actuator),
        Scheduler::OnbeatHard => run.with_onbeat(eevdf(), SimulatedActuator::hard),
    }
}

fn fair(slice: Span, count: usize) -> Linux {
    let fair = Fair {
        slice,
        ..Fair::nice(0)
    };
    Linux::new(Config::global(1), vec![(Class::Fair(fair), 0); count])
}

pub(crate) fn measuring() -> Best {
    let mut rules = Best::default();
    rules.params.discard_late = 0;
    rules
}

/// The same under BEST, and what it knows of the program at this place, each [`SAMPLE`].
pub(crate) fn run_best(
    rules: Best,
    programs: Vec<Workload>,
    duration: Span,
    place: usize,
) -> (Vec<Outcome>, Vec<best::Task>) {
    let count = programs.len();
    let mut known = Vec::new();
    let best = ruled(rules, count);
    let outcomes = Run { programs, duration }.alone(best, |best| {
        known.push(*best.task(place));
    });
    (outcomes, known)
}

fn ruled<R: Rules>(rules: R, count: usize) -> Ruled<R> {
    Ruled::new(rules, 1, vec![0; count])
}

struct Run {
    programs: Vec<Workload>,
    duration: Span,
}

impl Run {
    fn machine<P: Policy, O: Observer>(&self, policy: P, observer: O) -> Machine<P, O> {
        let mut machine = Machine::new(&one_cpu(), policy, observer);
        for (tid, workload) in (FIRST_TID..).zip(&self.programs) {
            machine.add(TaskId::recorded(tid), workload.clone());
        }
        machine
    }

    fn outcomes(&self) -> Outcomes {
        let samples = self.duration.as_ns() / SAMPLE.as_ns();
        let outcome = Outcome {
            jobs: Vec::new(),
            cpu: vec![Span::ZERO; usize::try_from(samples).unwrap_or(0)],
        };
        Outcomes(vec![outcome; self.programs.len()])
    }

    fn ends(&self) -> Instant {
        Instant::ZERO + self.duration
    }

    fn alone<P: Policy>(&self, policy: P, mut seen: impl FnMut(&P)) -> Vec<Outcome> {
        let mut machine = self.machine(policy, self.outcomes());
        while machine.now() < self.ends() {
            machine.run_until(machine.now() + SAMPLE);
            seen(machine.policy());
        }
        machine.finish().1.0
    }

    /// onbeat is pointed at the programs that have deadlines, as a user would.
    fn with_onbeat(&self, linux: Linux, how: impl FnOnce(Acting) -> Acting) -> Vec<Outcome> {
        let bound = self.programs.iter().position(Workload::is_cpu_bound);
        let kept = bound.unwrap_or(self.programs.len());
        let tasks = tasks(self.programs.len());
        let machine = self.machine(linux, (SensedEvents::new(tasks.clone()), self.outcomes()));
        let (mut sensor, actuator) = seams(machine, 1, None, self.ends());
        for task in tasks.iter().take(kept) {
            let Ok(()) = sensor.track(task.id.tid, Follow::Threads);
        }
        let mut controller = Controller::new(Settings::default(), how(actuator));
        let Ok(()) = drive(&mut sensor, &mut controller, |_, _| Next::Continue);
        drop(controller);
        let machine = sensor.into_machine();
        machine.map_or_else(Vec::new, |machine| machine.finish().1.1.0)
    }
}

type Acting = SimulatedActuator<Outcomes>;

#[derive(Debug)]
struct Outcomes(Vec<Outcome>);

impl Observer for Outcomes {
    fn job(&mut self, job: &Completion) {
        self.0[job.task].jobs.push((job.deadline, job.ended));
    }

    fn ran(&mut self, stretch: &Stretch) {
        let cpu = &mut self.0[stretch.task].cpu;
        let mut from = stretch.from;
        while from < stretch.to {
            let sample = from.as_ns() / SAMPLE.as_ns();
            let to = stretch.to.min(Instant::ZERO + SAMPLE * (sample + 1));
            if let Some(had) = usize::try_from(sample).ok().and_then(|n| cpu.get_mut(n)) {
                *had += to.since(from);
            }
            from = to;
        }
    }
}
