//! One run of a bed under a method.

use std::collections::BTreeMap;

use onbeat_control::{AllocationSettings, EstimationSettings, Settings};
use onbeat_decide::predictor::Parameters;
use onbeat_lfspp::reference::{self, ReferenceController as Reference};
use onbeat_model::{Bandwidth, Follow, Instant, Reservation, Sensor, Span};
use onbeat_sim::loop_adapter::{SensedEvents, machine_of, seams, tasks, under_onbeat};
use onbeat_sim::observe::Completion;
use onbeat_sim::policy::linux::{Class, Config, DeadlineClass, Fair, Fixed, Linux, Order};
use onbeat_sim::workload::{Arrival, Demand};
use onbeat_sim::{Machine, Observer, Work, Workload};

use super::beds::{Bed, DURATION, DrawnProgram, HOGS_FROM};
use super::margin::{MarginActuator, Reserved};

/// The share of jobs that are to be in time, by all methods that can be told one.
pub(super) const RHO: f64 = 0.99;
const PERMILLE: u32 = 990;
/// The most that all reservations together may take: the kernel's limit, for all methods.
const TOTAL: f64 = 0.95;

/// With one program beside them its fair share is a fifth of the CPU.
const HOGS: usize = 4;

#[derive(Clone, Debug)]
pub(super) enum Method {
    Default,
    /// `chrt -r 1`.
    RoundRobin,
    /// A budget for each, known beforehand, that the share [`RHO`] of its jobs stays within.
    ByHand,
    Reference(Reference),
    /// Its reservations are ceilings: nothing is given that it did not ask for.
    Onbeat {
        marked: bool,
    },
}

/// onbeat's loop as it comes, for the share [`RHO`].
fn settings() -> Settings {
    Settings {
        estimation: EstimationSettings {
            parameters: Parameters {
                overruns: 1.0 - RHO,
                ..Parameters::default()
            },
            ..EstimationSettings::default()
        },
        allocation: AllocationSettings {
            total: TOTAL,
            per_task: Bandwidth::from_cpus(TOTAL),
            ..AllocationSettings::default()
        },
        means: onbeat_control::AllowedMeans {
            raises: true,
            ..Default::default()
        },
        ..Settings::default()
    }
}

#[derive(Clone, Copy, Default)]
pub(super) struct RunOutcome {
    /// The share of the first program's jobs that were late.
    pub(super) late: f64,
    pub(super) latest_ms: f64,
    /// The mean of the reservations over the demand; of all programs. None where nothing is
    /// reserved.
    pub(super) reserved: Option<f64>,
}

pub(super) fn run(bed: Bed, method: &Method, margin: f64, seed: u64) -> RunOutcome {
    let run = BedRun {
        bed,
        programs: bed.programs(seed),
    };
    match method {
        Method::Default => run.alone(|_| Class::Fair(Fair::nice(0)), None),
        Method::RoundRobin => run.alone(
            |_| {
                Class::Fixed(Fixed {
                    priority: 1,
                    order: Order::RoundRobin,
                })
            },
            None,
        ),
        Method::ByHand => run.by_hand(margin),
        Method::Reference(reference) => run.reference(reference, margin),
        Method::Onbeat { marked } => run.onbeat(*marked, margin),
    }
}

struct BedRun {
    bed: Bed,
    programs: Vec<DrawnProgram>,
}

impl BedRun {
    fn by_hand(&self, margin: f64) -> RunOutcome {
        let budget = |program: &DrawnProgram| {
            let runtime = program.quantile(RHO).scale(1.0 + margin);
            let runtime = runtime.min(program.period);
            Reservation::implicit(runtime, program.period).expect("a budget above zero")
        };
        let reserved = self
            .programs
            .iter()
            .map(|p| budget(p).bandwidth().as_cpus());
        let reserved: f64 = reserved.sum();
        if reserved > TOTAL {
            // The kernel refuses: what does not fit is no point of the curve.
            return RunOutcome {
                late: f64::NAN,
                latest_ms: f64::NAN,
                reserved: Some(f64::NAN),
            };
        }
        self.alone(
            |program| Class::Deadline(DeadlineClass::hard(budget(program))),
            Some(reserved),
        )
    }

    fn alone(&self, class: impl Fn(&DrawnProgram) -> Class, reserved: Option<f64>) -> RunOutcome {
        let mut machine = self.machine(class, JobEnds::default(), false);
        machine.run_until(ends());
        self.outcome(&machine.finish().1, reserved)
    }

    fn reference(&self, reference: &Reference, margin: f64) -> RunOutcome {
        let marks = matches!(reference, Reference::Adaptive(_));
        let (mut sensor, actuator) = seams(self.watched(marks), 1, None, ends());
        for task in tasks(self.programs.len()) {
            let Ok(()) = sensor.track(task.id.tid, Follow::Threads);
        }
        let reserved = Reserved::default();
        let mut actuator = MarginActuator::new(actuator.hard(), margin, reserved.clone());
        let mut sum = Sum::new(self.bed, reserved);
        let Ok(_) = reference::drive(reference, &mut sensor, &mut actuator, |now| sum.until(now));
        drop(actuator);
        let machine = sensor.into_machine().expect("the actuator is gone");
        self.outcome(&machine.finish().1.1, Some(sum.mean()))
    }

    fn onbeat(&self, marked: bool, margin: f64) -> RunOutcome {
        let reserved = Reserved::default();
        let mut sum = Sum::new(self.bed, reserved.clone());
        let jobs = under_onbeat(
            self.watched(marked),
            self.programs.len(),
            ends(),
            settings(),
            |actuator| MarginActuator::new(actuator.hard().boosting(), margin, reserved),
            |now, _| sum.until(now),
        );
        self.outcome(&jobs, Some(sum.mean()))
    }

    fn watched(&self, marks: bool) -> Machine<Linux, (SensedEvents, JobEnds)> {
        let heard = SensedEvents::new(tasks(self.programs.len() + HOGS));
        let fair = |_: &DrawnProgram| Class::Fair(Fair::nice(0));
        self.machine(fair, (heard, JobEnds::default()), marks)
    }

    fn machine<O: Observer>(
        &self,
        class: impl Fn(&DrawnProgram) -> Class,
        observer: O,
        marks: bool,
    ) -> Machine<Linux, O> {
        let programs = self.programs.iter().map(|program| {
            let workload = Workload::listed(program.jobs.clone().into(), Some(program.period));
            let workload = match marks {
                true => workload.marking(PERMILLE),
                false => workload,
            };
            (class(program), workload)
        });
        let endless = Arrival::After {
            pause: Span::ZERO,
            first: Some(Instant::ZERO + HOGS_FROM),
        };
        let hog = Workload::new(endless, Demand::Constant(Work::ENDLESS));
        let hogs = std::iter::repeat_n((Class::Fair(Fair::nice(0)), hog), HOGS);
        machine_of(Config::global(1), programs.chain(hogs), observer)
    }

    fn outcome(&self, jobs: &JobEnds, reserved: Option<f64>) -> RunOutcome {
        let from = self.bed.counts_from();
        let Some(first) = self.programs.first() else {
            return RunOutcome::default();
        };
        let due = first
            .jobs
            .iter()
            .filter(|job| job.release >= from && job.deadline <= ends());
        let (mut count, mut late, mut latest) = (0_u32, 0_u32, Span::ZERO);
        for job in due {
            let ended = jobs.0.get(&job.release).copied().unwrap_or(ends());
            count += 1;
            late += u32::from(ended > job.deadline || !jobs.0.contains_key(&job.release));
            latest = latest.max(ended.since(job.deadline));
        }
        let needed: f64 = self
            .programs
            .iter()
            .map(|program| program.needs(from))
            .sum();
        RunOutcome {
            late: f64::from(late) / f64::from(count.max(1)),
            latest_ms: latest.as_ms_f64(),
            reserved: reserved.map(|reserved| reserved / needed),
        }
    }
}

/// When the jobs of the first task ended, by their release.
#[derive(Debug, Default)]
struct JobEnds(BTreeMap<Instant, Instant>);

impl Observer for JobEnds {
    fn job(&mut self, job: &Completion) {
        if job.task == 0 {
            self.0.insert(job.release, job.ended);
        }
    }
}

fn ends() -> Instant {
    Instant::ZERO + DURATION
}

/// The reservations, over the time that counts.
struct Sum {
    reserved: Reserved,
    from: Instant,
    last: Instant,
    present: f64,
    cpu_seconds: f64,
}

impl Sum {
    fn new(bed: Bed, reserved: Reserved) -> Self {
        Self {
            reserved,
            from: bed.counts_from(),
            last: bed.counts_from(),
            present: 0.0,
            cpu_seconds: 0.0,
        }
    }

    /// The last reservations held until `now`; what is from now on may be something else.
    fn until(&mut self, now: Instant) {
        self.cpu_seconds += self.present * now.since(self.last).as_secs_f64();
        self.last = self.last.max(now);
        self.present = self.reserved.cpus();
    }

    fn mean(mut self) -> f64 {
        self.until(ends());
        self.cpu_seconds / ends().since(self.from).as_secs_f64()
    }
}
