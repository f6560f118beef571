//! One run of a program beside hogs in the simulated machine.

use onbeat_control::Settings;
use onbeat_model::{Instant, Reservation, Span};
use onbeat_sim::loop_adapter::{self, SensedEvents, SimulatedActuator, tasks};
use onbeat_sim::policy::linux::{Class, DeadlineClass, Fair, Linux};
use onbeat_sim::{Machine, Observer, Workload};

use super::following::{FollowTimes, is_same};
use super::programs::{ChangingProgram, DURATION};
use crate::simulated::{HOGS, JobEnds};

const HOGS_FROM: Span = Span::from_secs(3);
const RHO: f64 = 0.99;
/// By how much a reservation by hand changes before the first job at the new rate.
const JUST_BEFORE: Span = Span::from_us(1);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProgramMethod {
    Default,
    /// A budget for 99% of its jobs, known beforehand, that changes just before the first job at
    /// the new rate. A ceiling.
    ByHand,
    Onbeat,
    /// The same with reservations that are ceilings.
    OnbeatHard,
}

impl ProgramMethod {
    pub(super) const ALL: [Self; 4] = [Self::Default, Self::ByHand, Self::OnbeatHard, Self::Onbeat];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::ByHand => "by hand",
            Self::Onbeat => "onbeat",
            Self::OnbeatHard => "onbeat --hard",
        }
    }

    pub(super) const fn is_onbeat(self) -> bool {
        matches!(self, Self::Onbeat | Self::OnbeatHard)
    }
}

pub(super) fn run(program: &ChangingProgram, method: ProgramMethod) -> (FollowTimes, JobEnds) {
    match method {
        ProgramMethod::Default => alone(program, [Class::Fair(Fair::nice(0)); 2]),
        ProgramMethod::ByHand => alone(
            program,
            [false, true].map(|is_after| by_hand(program, is_after)),
        ),
        ProgramMethod::Onbeat => under_onbeat(program, false),
        ProgramMethod::OnbeatHard => under_onbeat(program, true),
    }
}

fn by_hand(program: &ChangingProgram, is_after: bool) -> Class {
    let [before, after] = program.periods;
    let period = if is_after { after } else { before };
    let runtime = program.quantile(RHO, is_after).min(period);
    let reservation = Reservation::implicit(runtime, period).expect("a budget above zero");
    Class::Deadline(DeadlineClass::hard(reservation))
}

fn alone(program: &ChangingProgram, [before, after]: [Class; 2]) -> (FollowTimes, JobEnds) {
    let mut machine = machine(program, before, JobEnds::default());
    machine.run_until(program.changed - JUST_BEFORE);
    machine.change(|policy, calendar| policy.set_class(0, after, calendar));
    machine.run_until(ends());
    (FollowTimes::default(), machine.finish().1)
}

fn under_onbeat(program: &ChangingProgram, is_hard: bool) -> (FollowTimes, JobEnds) {
    let observer = (SensedEvents::new(tasks(1 + HOGS)), JobEnds::default());
    let machine = machine(program, Class::Fair(Fair::nice(0)), observer);
    let how = |actuator: SimulatedActuator<JobEnds>| match is_hard {
        true => actuator.hard(),
        false => actuator,
    };
    let (mut following, settings) = (FollowTimes::default(), Settings::default());
    let jobs = loop_adapter::under_onbeat(machine, 1, ends(), settings, how, |now, controller| {
        if now >= program.changed
            && let Some(thread) = controller.threads(now).next()
        {
            let (since, new) = (now.since(program.changed), program.periods[1]);
            let known = thread.period.filter(|_| thread.present.is_locked);
            if known.is_some_and(|period| is_same(period, new)) {
                following.known.get_or_insert(since);
            }
            let held = thread.present.reservation.map(|held| held.period());
            following.holds(held, new, since);
        }
    });
    (following, jobs)
}

fn machine<O: Observer>(program: &ChangingProgram, class: Class, observer: O) -> Machine<Linux, O> {
    let workload = Workload::listed(program.jobs.clone().into(), Some(program.periods[0]));
    crate::simulated::machine([(class, workload)], HOGS_FROM, observer)
}

fn ends() -> Instant {
    Instant::ZERO + DURATION
}

/// Each job of the program that is due in the run: its release, and whether it was in time.
pub(super) fn judged(ends_of: &JobEnds, program: &ChangingProgram) -> Vec<(Instant, bool)> {
    let due = program.jobs.iter().filter(|job| job.deadline <= ends());
    due.map(|job| {
        let ended = ends_of.0.get(&job.release);
        (job.release, ended.is_some_and(|&at| at <= job.deadline))
    })
    .collect()
}
