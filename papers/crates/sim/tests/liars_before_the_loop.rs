//! The worth of missed deadline notifications to a liar before onbeat's main loop: Fig. 7 (b) of
//! the paper, as a bound, on the simulated machine. experiments/mdn-cheaters has the figures.

use onbeat_control::{AllowedMeans, Settings};
use onbeat_model::{Instant, Span};
use onbeat_sim::loop_adapter::{SensedEvents, SimulatedActuator, machine_of, tasks, under_onbeat};
use onbeat_sim::observe::Stretch;
use onbeat_sim::policy::linux::{Class, Config, Fair};
use onbeat_sim::workload::{Arrival, Demand, Film, Notifies};
use onbeat_sim::{Observer, Work, Workload};

const SECONDS: u64 = 30;
/// The cheater begins here.
const CHANGE: u64 = 15;

/// The CPU time of the first task in each second.
struct Had(Vec<Span>);

impl Observer for Had {
    fn ran(&mut self, stretch: &Stretch) {
        let second = (stretch.from.as_ns() / 1_000_000_000) as usize;
        if stretch.task == 0
            && let Some(had) = self.0.get_mut(second)
        {
            *had += stretch.to.since(stretch.from);
        }
    }
}

fn hog() -> Workload {
    Workload::new(Arrival::Always, Demand::constant(Span::from_ms(10)))
}

/// 25 frames a second that need 40% of the CPU.
fn decoder(seed: u64) -> Workload {
    let arrival = Arrival::Paced {
        period: Span::from_ms(40),
        next: Instant::from_ns(400_000 * (seed * 37 % 100)),
        timer: Span::ZERO,
    };
    let frames = Film::of_seed(seed * 16).varied(1400);
    Workload::new(arrival, Demand::Decoder(Span::from_ms(16), frames))
}

/// The CPU time of the first of these programs in each second, in permille of the CPU, under the
/// main loop, which is pointed at all.
fn run(programs: &[Workload]) -> Vec<u64> {
    let fair = Class::Fair(Fair {
        slice: Span::from_us(700),
        ..Fair::nice(0)
    });
    let had = Had(vec![Span::ZERO; SECONDS as usize]);
    let machine = machine_of(
        Config::global(1),
        programs.iter().map(|program| (fair, program.clone())),
        (SensedEvents::new(tasks(programs.len())), had),
    );
    let ends = Instant::ZERO + Span::from_secs(SECONDS);
    let settings = Settings {
        means: AllowedMeans {
            raises: true,
            ..AllowedMeans::default()
        },
        ..Settings::default()
    };
    let boosting = SimulatedActuator::boosting;
    let Had(had) = under_onbeat(machine, programs.len(), ends, settings, boosting, |_, _| {});
    had.iter().map(|had| had.as_ns() / 1_000_000).collect()
}

/// The mean of these seconds.
fn mean(had: &[u64], from: u64, to: u64) -> u64 {
    let seconds = had.iter().skip(from as usize).take((to - from) as usize);
    seconds.sum::<u64>() / (to - from)
}

/// Films that show their rhythm beside two CPU-bound programs when they notify, so that there is
/// something to lose.
const SEEDS: [u64; 3] = [2, 3, 4];

#[test]
fn who_turns_cpu_bound_soon_loses_what_it_had_earned_whatever_it_says() {
    let change = Instant::ZERO + Span::from_secs(CHANGE);
    for seed in SEEDS {
        let honest = decoder(seed).notifying(Notifies::WhenLate);
        let crying_each = |us| {
            let cries = Notifies::Every(Work::at_full_speed(Span::from_us(us)));
            hog().notifying(cries)
        };
        for turned in [crying_each(1000), crying_each(40_000), hog()] {
            let cheater = honest.clone().then(change, turned);
            let had = run(&[cheater, hog(), hog()]);
            // A fair share is 333. The beat ends when it has computed for ten periods.
            let (at_first, then) = (
                mean(&had, CHANGE, CHANGE + 5),
                mean(&had, CHANGE + 5, SECONDS),
            );
            assert!(at_first <= 333 + 60, "{seed}: {at_first} of {had:?}");
            assert!(then <= 333 + 10, "{seed}: {then} of {had:?}");
        }
    }
}

#[test]
fn an_honest_program_keeps_what_it_needs() {
    for seed in SEEDS {
        let honest = decoder(seed).notifying(Notifies::WhenLate);
        let had = run(&[honest, hog(), hog()]);
        let kept = mean(&had, CHANGE, SECONDS);
        assert!((380..=430).contains(&kept), "{seed}: {kept} of {had:?}");
    }
}

#[test]
fn an_honest_program_that_computes_for_a_second_has_what_it_needs_soon_after() {
    let at = |second| Instant::ZERO + Span::from_secs(second);
    for seed in SEEDS {
        let honest = decoder(seed).notifying(Notifies::WhenLate);
        let loads = hog().then(at(CHANGE + 1), honest.clone());
        let had = run(&[honest.then(at(CHANGE), loads), hog(), hog()]);
        let kept = mean(&had, CHANGE + 3, SECONDS);
        assert!((370..=430).contains(&kept), "{seed}: {kept} of {had:?}");
    }
}
