//! Two applications that are raised by real-time priorities keep their order: the one with the
//! shorter period goes first.

use onbeat_control::{AllowedMeans, Settings};
use onbeat_model::{Instant, Span};
use onbeat_sim::loop_adapter::{SensedEvents, SimulatedActuator, machine_of, tasks, under_onbeat};
use onbeat_sim::observe::Completion;
use onbeat_sim::policy::linux::{Class, Config, Fair};
use onbeat_sim::workload::{Arrival, Demand};
use onbeat_sim::{Observer, Workload};

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
    let machine = machine_of(
        Config::global(1),
        workloads.map(|workload| (Class::Fair(Fair::nice(0)), workload)),
        (SensedEvents::new(tasks(3)), Jobs::default()),
    );
    let ends = Instant::ZERO + Span::from_secs(SECONDS);
    let settings = Settings {
        means: AllowedMeans {
            reserves: false,
            raises: true,
            ..AllowedMeans::default()
        },
        ..Settings::default()
    };
    let boosting = SimulatedActuator::boosting_by_priority;
    let Jobs(jobs) = under_onbeat(machine, 2, ends, settings, boosting, |_, _| {});
    let [(long, long_late), (short, short_late), _] = jobs;
    assert!(short >= 2900 && short_late == 0, "{short_late} of {short}");
    assert!(long >= 370 && long_late == 0, "{long_late} of {long}");
}
