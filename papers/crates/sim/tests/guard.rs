//! Reservations that make their application wait: the guard finds out, and it goes without them.

use onbeat_control::{AllocationSettings, Decision, Settings, Why};
use onbeat_model::{Instant, Span};
use onbeat_sim::loop_adapter::{SensedEvents, SimulatedActuator, machine_of, tasks, under_onbeat};
use onbeat_sim::observe::Completion;
use onbeat_sim::policy::linux::{Class, Config, Fair};
use onbeat_sim::workload::{Arrival, Demand};
use onbeat_sim::{Observer, Work, Workload};

const PERIOD: Span = Span::from_ms(40);
const SECONDS: u64 = 120;

/// When jobs ended late.
#[derive(Debug, Default)]
struct Late(Vec<Instant>);

impl Observer for Late {
    fn job(&mut self, job: &Completion) {
        if job.ended > job.deadline {
            self.0.push(job.ended);
        }
    }
}

/// Two programs with 40% of the one CPU in all, for which onbeat may reserve this share of it.
/// Returns the times at which jobs ended late, and at which the guard found that an application is
/// no better off with its reservation.
fn late(total: f64) -> (Vec<Instant>, Vec<Instant>) {
    let programs = (0..2_u64).map(|n| {
        let arrival = Arrival::Periodic {
            period: PERIOD,
            next: Instant::ZERO + Span::from_ms(7) * n,
            jitter: Span::ZERO,
        };
        let demands = [6, 8, 10].map(|ms| Work::at_full_speed(Span::from_ms(ms)));
        let demand = Demand::Recorded {
            demands: demands.into_iter().collect(),
            over: 0,
            repeat: true,
        };
        let workload = Workload::new(arrival, demand);
        (Class::Fair(Fair::nice(0)), workload)
    });
    let observer = (SensedEvents::new(tasks(2)), Late::default());
    let machine = machine_of(Config::global(1), programs, observer);
    let ends = Instant::ZERO + Span::from_secs(SECONDS);
    let settings = Settings {
        allocation: AllocationSettings {
            total,
            ..AllocationSettings::default()
        },
        ..Settings::default()
    };
    let mut found = Vec::new();
    let hard = SimulatedActuator::hard;
    let Late(late) = under_onbeat(machine, 2, ends, settings, hard, |_, controller| {
        let entries = controller.journal().filter_map(Decision::on_reservation);
        let harms = entries.filter(|entry| entry.why == Why::NoBetter);
        found.extend(harms.map(|entry| entry.at));
    });
    (late, found)
}

#[test]
fn programs_whose_budgets_are_too_small_go_without_and_are_in_time() {
    let (late, found) = late(0.36);
    // Both, and again after a pause of 40 s.
    assert_eq!(found.len(), 4, "{found:?}");
    let within = |from: Instant, until: Instant| {
        let jobs = late.iter();
        jobs.filter(|&&at| from <= at && at < until).count()
    };
    let harm = found[1];
    assert!(harm < Instant::ZERO + Span::from_secs(12), "{harm:?}");
    let (settled, again) = (harm + PERIOD * 3, harm + Span::from_secs(40));
    assert!(within(Instant::ZERO, harm) >= 100);
    assert_eq!(within(settled, again), 0);
    // They are compared for some seconds again, the one after the other.
    let compared = within(again, found[3] + PERIOD * 3);
    assert!(compared <= 200, "{compared} {found:?}");
    assert_eq!(
        within(found[3] + PERIOD * 3, again + Span::from_secs(60)),
        0
    );
}

#[test]
fn programs_whose_budgets_suffice_keep_them() {
    let (late, found) = late(0.85);
    assert!(found.is_empty() && late.is_empty(), "{found:?}, {late:?}");
}
