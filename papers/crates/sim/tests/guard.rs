//! Reservations that make their application wait: the guard finds out, and it goes without them.

use onbeat_control::{AllocationSettings, Controller, Decision, Next, Settings, Why, drive};
use onbeat_model::{Follow, Instant, Name, Sensor, Span, Task, TaskId};
use onbeat_sim::loop_adapter::{FIRST_TID, SensedEvents, seams};
use onbeat_sim::observe::Completion;
use onbeat_sim::policy::linux::{Class, Config, Fair, Linux};
use onbeat_sim::workload::{Arrival, Demand};
use onbeat_sim::{Cpus, Machine, Observer, Work, Workload};

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
    let tasks: Vec<Task> = [FIRST_TID, FIRST_TID + 1]
        .map(|tid| Task {
            id: TaskId::recorded(tid),
            pid: tid,
            comm: Name::from("player"),
        })
        .to_vec();
    let cpus = Cpus::of_one_speed(1);
    let linux = Linux::new(
        Config::global(1),
        vec![(Class::Fair(Fair::nice(0)), 0); tasks.len()],
    );
    let observer = (SensedEvents::new(tasks.clone()), Late::default());
    let mut machine = Machine::new(&cpus, linux, observer);
    for (n, task) in (0..).zip(&tasks) {
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
        machine.add(task.id, Workload::new(arrival, demand));
    }
    let ends = Instant::ZERO + Span::from_secs(SECONDS);
    let (mut sensor, actuator) = seams(machine, 1, None, ends);
    for task in &tasks {
        let Ok(()) = sensor.track(task.id.tid, Follow::Threads);
    }
    let settings = Settings {
        allocation: AllocationSettings {
            total,
            ..AllocationSettings::default()
        },
        ..Settings::default()
    };
    let mut controller = Controller::new(settings, actuator.hard());
    let mut found = Vec::new();
    let Ok(()) = drive(&mut sensor, &mut controller, |_, controller| {
        let entries = controller.journal().filter_map(Decision::on_reservation);
        let harms = entries.filter(|entry| entry.why == Why::NoBetter);
        found.extend(harms.map(|entry| entry.at));
        Next::Continue
    });
    drop(controller);
    let (_, (_, late)) = sensor.into_machine().unwrap().finish();
    (late.0, found)
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
