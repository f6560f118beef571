use crate::analysed::analysed;
use crate::made_up::{self, two_kinds};
use crate::synthetic::{Random, burst};
use onbeat_infer::period::AnalyserConfig;

const RUNS: u64 = 200;
const STATED: f64 = 0.01;
/// The most alarms that a true rate of 1% gives in that many runs with a probability of 99.9%.
const MOST: u64 = 7;

/// How many of the threads are called periodic that sleep as `sleep` says, in means of 1 to 100 ms.
fn alarms(bursts: u32, sleep: impl Fn(&mut Random) -> f64) -> u64 {
    (0..RUNS)
        .filter(|&seed| {
            let mut random = Random::new(seed + 1000 * u64::from(bursts));
            let mean = random.ratio_between(1e6, 1e8);
            let mut now = 1e9;
            let train = (0..bursts)
                .map(|_| {
                    now += sleep(&mut random) * mean;
                    burst(now, random.ratio_between(1e4, 1e6))
                })
                .collect();
            !analysed(train).is_empty()
        })
        .count() as u64
}

#[test]
fn sleeps_without_a_rhythm_are_called_periodic_no_more_often_than_stated() {
    type Kind = (&'static str, fn(&mut Random) -> f64);
    assert_eq!(STATED, AnalyserConfig::default().false_alarm_rate);
    let kinds: [Kind; 7] = [
        ("a Poisson process", Random::exponential),
        ("of any length up to a limit", |random| {
            random.between(0.0, 2.0)
        }),
        ("lognormal", |random| (0.7 * random.normal()).exp()),
        ("more widely lognormal", |random| {
            (1.5 * random.normal()).exp()
        }),
        ("bursts of wakeups", |random| {
            if random.chance(0.25) {
                random.exponential()
            } else {
                random.between(0.01, 0.03)
            }
        }),
        ("within half their mean", |random| random.between(0.5, 1.5)),
        ("of two kinds in any order", two_kinds),
    ];
    for (kind, sleep) in kinds {
        for bursts in [8, 15, 30, 80] {
            let count = alarms(bursts, sleep);
            assert!(
                count <= MOST,
                "{kind}: {count} of {RUNS} with {bursts} bursts"
            );
        }
    }
}

fn periodic_of(kind: &str) -> usize {
    let mut trains = made_up::trains(0, 100);
    trains.retain(|train| train.kind == kind);
    let of_kind = trains.into_iter().filter(|train| {
        assert_eq!(train.period_ns, None);
        !analysed(train.bursts.clone()).is_empty()
    });
    of_kind.count()
}

/// Beside hogs it often gets its turn at a tick of the kernel only, so what follows each of its
/// short jobs comes soon after a tick.
#[test]
fn a_writer_to_a_disk_that_gets_its_turn_at_ticks_is_not_periodic() {
    assert!(periodic_of("disk beside hogs") <= 10);
}

#[test]
fn timeouts_of_a_few_lengths_that_end_at_ticks_are_not_periodic() {
    assert!(periodic_of("timeouts in ticks") <= 5);
    assert!(periodic_of("waits for the tick") <= 15);
}
