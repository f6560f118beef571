//! Runs on one simulated CPU, under each scheduler.

use onbeat_control::Settings;
use onbeat_model::{Instant, Span, TaskId};
use onbeat_policies::{Berate, Best, Linux24, Rules, Structures, best};
use onbeat_sim::loop_adapter::{FIRST_TID, SensedEvents, SimulatedActuator, tasks, under_onbeat};
use onbeat_sim::observe::{Completion, Stretch};
use onbeat_sim::policy::linux::{Class, Config, Fair, Linux};
use onbeat_sim::policy::ruled::Ruled;
use onbeat_sim::{Cpus, Machine, Observer, Policy};

use super::run::{Known, Run};
use super::{Outcome, SAMPLE, Scheduler};

pub(super) fn run(run: &Run, duration: Span) -> Vec<Outcome> {
    let count = run.programs.len();
    let eevdf = || fair(Span::from_us(700), count);
    let ends = Instant::ZERO + duration;
    match run.scheduler {
        // Its quanta end at the ticks of 10 ms that its rules count.
        Scheduler::Linux24 | Scheduler::Linux24Hz100 => {
            alone(run, ends, ruled(Linux24::default(), count), |_| {})
        }
        Scheduler::Best | Scheduler::BestMeasuring => alone(run, ends, best(run), |_| {}),
        Scheduler::Berate | Scheduler::BerateHz100 => {
            let berate = ruled(Berate::default(), count).ticking(run.scheduler.tick());
            alone(run, ends, berate, |_| {})
        }
        Scheduler::Eevdf => alone(run, ends, eevdf(), |_| {}),
        Scheduler::EevdfShort => alone(run, ends, fair(Span::from_us(100), count), |_| {}),
        Scheduler::Onbeat => with_onbeat(run, ends, eevdf(), |actuator| actuator),
        Scheduler::OnbeatHard => with_onbeat(run, ends, eevdf(), SimulatedActuator::hard),
    }
}

/// What BEST knows of the program at this place, each [`SAMPLE`].
pub(super) fn known(run: &Run, duration: Span, place: usize) -> Vec<Known> {
    let mut known = Vec::new();
    alone(run, Instant::ZERO + duration, best(run), |best| {
        let task = best.task(place);
        known.push(Known {
            period_ns: task.period_ns,
            confidence: task.confidence,
        });
    });
    known
}

fn fair(slice: Span, count: usize) -> Linux {
    let fair = Fair {
        slice,
        ..Fair::nice(0)
    };
    Linux::new(Config::global(1), vec![(Class::Fair(fair), 0); count])
}

fn best(run: &Run) -> Ruled<best::Named> {
    let mut rules = Best::default();
    if run.scheduler == Scheduler::BestMeasuring {
        rules.params.discard_late = 0;
    }
    ruled(rules, run.programs.len())
}

fn ruled<S: Structures>(rules: Rules<S>, count: usize) -> Ruled<S> {
    Ruled::new(rules, 1, vec![0; count])
}

fn machine<P: Policy, O: Observer>(run: &Run, policy: P, observer: O) -> Machine<P, O> {
    let mut machine = Machine::new(&Cpus::of_one_speed(1), policy, observer);
    for (tid, program) in (FIRST_TID..).zip(&run.programs) {
        machine.add(TaskId::recorded(tid), program.workload.clone());
    }
    machine
}

fn outcomes(run: &Run, ends: Instant) -> Outcomes {
    let samples = ends.as_ns() / SAMPLE.as_ns();
    let outcome = Outcome {
        jobs: Vec::new(),
        cpu: vec![Span::ZERO; usize::try_from(samples).unwrap_or(0)],
    };
    Outcomes(vec![outcome; run.programs.len()])
}

fn alone<P: Policy>(run: &Run, ends: Instant, policy: P, mut seen: impl FnMut(&P)) -> Vec<Outcome> {
    let mut machine = machine(run, policy, outcomes(run, ends));
    while machine.now() < ends {
        machine.run_until(machine.now() + SAMPLE);
        seen(machine.policy());
    }
    machine.finish().1.0
}

/// onbeat is pointed at the programs that have deadlines, as a user would.
fn with_onbeat(
    run: &Run,
    ends: Instant,
    linux: Linux,
    how: impl FnOnce(Acting) -> Acting,
) -> Vec<Outcome> {
    let workloads = run.programs.iter().map(|program| &program.workload);
    let kept = workloads.take_while(|workload| !workload.is_cpu_bound());
    let heard = SensedEvents::new(tasks(run.programs.len()));
    let machine = machine(run, linux, (heard, outcomes(run, ends)));
    let outcomes = under_onbeat(
        machine,
        kept.count(),
        ends,
        Settings::default(),
        how,
        |_, _| {},
    );
    outcomes.0
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
