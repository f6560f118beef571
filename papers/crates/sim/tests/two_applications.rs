//! Two applications that are raised by real-time priorities keep their order: the one with the
//! shorter period goes first.

use onbeat_control::{AllowedMeans, Controller, Next, Settings, drive};
use onbeat_model::{Follow, Instant, Name, Sensor, Span, Task, TaskId};
use onbeat_sim::loop_adapter::{FIRST_TID, SensedEvents, seams};
use onbeat_sim::observe::Completion;
use onbeat_sim::policy::linux::{Class, Config, Fair, Linux};
use onbeat_sim::workload::{Arrival, Demand};
use onbeat_sim::{Cpus, Machine, Observer, Workload};

const SECONDS: u64 = 20;
/// From here on, periods are known.
const FROM: Instant = Instant::from_ns(5_000_000_000);

/// Jobs of each task that ended after `FROM`, and how many of these were late.
#[derive(Debug, Default)]
struct Jobs([(u64, u64); 3]);

impl Observer for Jobs {
    fn job(&mut self, job: &Completion) {
        if job.ended >= FROM {
            let (jobs, late) = &mut self.0[job.task];
            *jobs += 1;
            *late += u64::from(job.ended > job.deadline);
        }
    }
}

#[test]
fn the_shorter_period_is_in_time_beside_the_longer_and_the_longer_beside_a_hog() {
    let ms = Span::from_ms;
    let periodic = |period, demand| {
        let arrival = Arrival::Periodic {
            period,
            next: Instant::ZERO,
            jitter: Span::ZERO,
        };
        Workload::new(arrival, Demand::constant(demand))
    };
    // The longer one first, so that no order of theirs helps.
    let workloads = [
        periodic(ms(40), ms(16)),
        periodic(ms(5), ms(2)),
        Workload::new(Arrival::Always, Demand::constant(ms(10))),
    ];
    let task = |tid| Task {
        id: TaskId::recorded(tid),
        pid: tid,
        comm: Name::from("program"),
    };
    let tasks: Vec<Task> = (FIRST_TID..).take(workloads.len()).map(task).collect();
    let classes = vec![(Class::Fair(Fair::nice(0)), 0); workloads.len()];
    let linux = Linux::new(Config::global(1), classes);
    let observer = (SensedEvents::new(tasks.clone()), Jobs::default());
    let mut machine = Machine::new(&Cpus::of_one_speed(1), linux, observer);
    for (task, workload) in tasks.iter().zip(workloads) {
        machine.add(task.id, workload);
    }
    let ends = Instant::ZERO + Span::from_secs(SECONDS);
    let (mut sensor, actuator) = seams(machine, 1, None, ends);
    for task in &tasks[..2] {
        let Ok(()) = sensor.track(task.id.tid, Follow::Threads);
    }
    let settings = Settings {
        means: AllowedMeans {
            reserves: false,
            raises: true,
            ..AllowedMeans::default()
        },
        ..Settings::default()
    };
    let mut controller = Controller::new(settings, actuator.boosting_by_priority());
    let Ok(()) = drive(&mut sensor, &mut controller, |_, _| Next::Continue);
    drop(controller);
    let (_, (_, Jobs(jobs))) = sensor.into_machine().unwrap().finish();
    let [(long, long_late), (short, short_late), _] = jobs;
    assert!(short >= 2900 && short_late == 0, "{short_late} of {short}");
    assert!(long >= 370 && long_late == 0, "{long_late} of {long}");
}
