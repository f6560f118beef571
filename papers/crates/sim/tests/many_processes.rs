//! Many periodic processes of one program beside four hogs for each CPU, where the kernel refuses
//! real-time priorities: each is in time, as far as there are CPUs.

use onbeat_control::{AllowedMeans, Party, Settings};
use onbeat_model::{Instant, Span};
use onbeat_sim::loop_adapter::{
    FIRST_TID, SensedEvents, SimulatedActuator, machine_of, tasks, under_onbeat,
};
use onbeat_sim::observe::Completion;
use onbeat_sim::policy::linux::{Class, Config, Fair};
use onbeat_sim::workload::{Arrival, Demand};
use onbeat_sim::{Observer, Workload};

const CPUS: usize = 16;
const SECONDS: u64 = 10;
/// From here on, need and beats are known.
const FROM: Instant = Instant::from_ns(3_000_000_000);

/// Jobs of each task in time after `FROM`.
#[derive(Debug)]
struct InTime(Vec<u64>);

impl Observer for InTime {
    fn job(&mut self, job: &Completion) {
        if job.ended >= FROM && job.ended <= job.deadline {
            self.0[job.task] += 1;
        }
    }
}

/// The share of jobs in time, and that of the worst process.
fn in_time(processes: u32) -> (f64, f64) {
    let ms = Span::from_ms;
    let count = processes as usize + 4 * CPUS;
    let programs = (0..count as u32).map(|n| {
        let workload = if n < processes {
            let arrival = Arrival::Paced {
                period: ms(10),
                next: Instant::ZERO + ms(100) + ms(10) * u64::from(n) / u64::from(processes),
                timer: Span::ZERO,
            };
            Workload::new(arrival, Demand::constant(ms(3)))
        } else {
            Workload::new(Arrival::Always, Demand::constant(ms(10)))
        };
        (Class::Fair(Fair::nice(0)), workload)
    });
    let config = Config {
        tick: ms(4),
        ..Config::global(CPUS)
    };
    let observer = (SensedEvents::new(tasks(count)), InTime(vec![0; count]));
    let machine = machine_of(config, programs, observer);
    let ends = Instant::ZERO + Span::from_secs(SECONDS);
    let settings = Settings {
        means: AllowedMeans {
            reserves: false,
            raises: true,
            ..AllowedMeans::default()
        },
        parties: Box::new(|_| Party {
            application: Some(FIRST_TID),
            ..Party::default()
        }),
        ..Settings::default()
    };
    let boosting = SimulatedActuator::boosting;
    let InTime(jobs) = under_onbeat(
        machine,
        processes as usize,
        ends,
        settings,
        boosting,
        |_, _| {},
    );
    let due = (SECONDS - 3) as f64 * 100.0;
    let jobs = &jobs[..processes as usize];
    let least = jobs.iter().min().copied().unwrap_or_default() as f64;
    let all = jobs.iter().sum::<u64>() as f64;
    (all / due / f64::from(processes), least / due)
}

#[test]
fn each_process_is_in_time_while_there_are_cpus() {
    for processes in [12, 24] {
        let (all, worst) = in_time(processes);
        assert!(all >= 0.999 && worst >= 0.99, "{processes}: {all} {worst}");
    }
}
