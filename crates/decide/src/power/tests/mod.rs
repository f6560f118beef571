mod uniform;

use onbeat_model::{Bandwidth, Instant, Ladder, Reservation, Span, Speed, TaskId};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed};

use super::*;
use crate::supervisor::{Limits, Request};

fn mhz(mhz: u64) -> Speed {
    Speed::from_khz(mhz * 1000).unwrap()
}

fn ladder(speeds: &[u64]) -> Ladder {
    Ladder::new(speeds.iter().map(|&speed| mhz(speed))).unwrap()
}

fn six() -> Ladder {
    ladder(&[300, 500, 600, 700, 800, 1000])
}

fn share(cpus: f64) -> Bandwidth {
    Bandwidth::from_cpus(cpus)
}

fn at(ms: u64) -> Instant {
    Instant::ZERO + Span::from_ms(ms)
}

fn task(tid: u32, runtime_ms: u64, period_ms: u64) -> Request {
    let ms = Span::from_ms;
    Request {
        task: TaskId::recorded(tid),
        wanted: Reservation::implicit(ms(runtime_ms), ms(period_ms)).unwrap(),
        least: Bandwidth::ZERO,
        weight: 1.0,
    }
}

const LIMITS: Limits = Limits {
    total: Bandwidth::ONE,
    per_task: Bandwidth::ONE,
    shortest_runtime: Span::from_ns(1024),
};

#[test]
fn a_share_grows_as_the_speed_falls_by_equation_6() {
    let there = projected_share(share(0.25), mhz(2400), mhz(1500));
    assert_eq!(there, share(0.4));
    assert_eq!(projected_share(there, mhz(1500), mhz(2400)), share(0.25));
}

#[test]
fn the_highest_speed_is_wanted_at_once_and_a_lower_one_step_by_step() {
    let band = Band::default();
    let wants = |used, present| band.wants(share(used), mhz(present), &six());
    assert_eq!(wants(0.81, 300), Some(mhz(1000)));
    assert_eq!(wants(0.81, 1000), None);
    assert_eq!(wants(0.80, 300), None);
    assert_eq!(wants(0.20, 1000), None);
    assert_eq!(wants(0.19, 1000), Some(mhz(800)));
    assert_eq!(wants(0.01, 500), Some(mhz(300)));
    assert_eq!(wants(0.01, 300), None);
}

fn of_figure_10() -> (PowerManager, [Request; 1]) {
    let manager = PowerManager::new(
        ProtocolRule::Band(Band::default()),
        ladder(&[1500, 2400]),
        mhz(2400),
    );
    (manager, [task(1, 18, 100)])
}

#[test]
fn a_fall_waits_for_the_longest_period_after_the_budgets() {
    let (mut manager, tasks) = of_figure_10();
    assert_eq!(
        manager.sampled(share(0.16), &tasks, &LIMITS),
        Some(SpeedStep::RaiseBudgets(mhz(1500)))
    );
    assert_eq!(manager.budgets_for(), mhz(1500));
    assert_eq!(manager.due(at(50), &tasks, &LIMITS), None, "not in force");
    manager.budgets_in_force(at(50), Span::from_ms(100));
    assert_eq!(manager.present(), mhz(2400));
    assert_eq!(manager.due(at(149), &tasks, &LIMITS), None);
    assert_eq!(
        manager.due(at(150), &tasks, &LIMITS),
        Some(SpeedStep::Fall(mhz(1500)))
    );
    manager.switched(mhz(1500));
    assert_eq!(manager.present(), mhz(1500));
    assert_eq!(manager.due(at(999), &tasks, &LIMITS), None);
}

#[test]
fn a_rise_is_made_at_once_and_ends_a_fall_on_its_way() {
    let mut manager = PowerManager::new(ProtocolRule::Band(Band::default()), six(), mhz(800));
    let idle = manager.sampled(share(0.1), &[], &LIMITS);
    assert_eq!(idle, Some(SpeedStep::RaiseBudgets(mhz(700))));
    manager.budgets_in_force(at(0), Span::from_ms(100));
    assert_eq!(
        manager.sampled(share(0.6), &[], &LIMITS),
        None,
        "still fits"
    );
    assert_eq!(manager.budgets_for(), mhz(700));
    assert_eq!(
        manager.sampled(share(0.9), &[], &LIMITS),
        Some(SpeedStep::Rise(mhz(1000)))
    );
    manager.switched(mhz(1000));
    assert_eq!(manager.due(at(999), &[], &LIMITS), None);
    assert_eq!(manager.budgets_for(), mhz(1000));
}

#[test]
fn a_fall_that_would_overload_is_dismissed() {
    let mut manager = PowerManager::new(
        ProtocolRule::Band(Band::default()),
        ladder(&[500, 1000]),
        mhz(1000),
    );
    // They reserve much more than they use.
    let tasks = [task(1, 30, 100), task(2, 12, 40)];
    assert_eq!(
        manager.sampled(share(0.1), &tasks, &LIMITS),
        Some(SpeedStep::Dismiss {
            to: mhz(500),
            projected: share(1.2)
        })
    );
    assert_eq!(manager.budgets_for(), mhz(1000));
    let one = [task(1, 60, 100)];
    assert!(projected_fit(&one, &LIMITS, mhz(1000), mhz(500)).is_err());
    let two_cpus = Limits {
        total: share(1.7),
        ..LIMITS
    };
    assert!(projected_fit(&one, &two_cpus, mhz(1000), mhz(500)).is_err());
    assert!(projected_fit(&tasks, &two_cpus, mhz(1000), mhz(500)).is_ok());
}

fn config() -> Config {
    Config {
        rng_seed: RngSeed::Fixed(0x6f6e_6265_6174),
        failure_persistence: None,
        cases: 512,
        ..Config::default()
    }
}

fn any_ladder() -> impl Strategy<Value = Ladder> {
    prop::collection::btree_set(200u64..4000, 1..12)
        .prop_map(|speeds| Ladder::new(speeds.into_iter().map(mhz)).unwrap())
}

prop_compose! {
    fn any_band()(low in 0.05f64..0.6, width in 0.05f64..0.39) -> Band {
        Band::new(share(low), share(low + width)).unwrap()
    }
}

fn uniform(best_effort: f64, cpus: u32) -> Uniform {
    Uniform { best_effort, cpus }
}

fn any_rule() -> impl Strategy<Value = ProtocolRule> {
    prop_oneof![
        any_band().prop_map(ProtocolRule::Band),
        (0.0f64..0.5).prop_map(|share| ProtocolRule::Uniform(uniform(share, 1)))
    ]
}

prop_compose! {
    fn any_task()(runtime in 1u64..50, period in 50u64..500) -> Request {
        task(1, runtime, period)
    }
}

proptest! {
    #![proptest_config(config())]

    /// A load with the same cycles in each second, whatever the speed: after one way down the
    /// ladder it rests.
    #[test]
    fn a_constant_load_comes_to_rest_at_a_speed(
        ladder in any_ladder(),
        band in any_band(),
        at_highest in 0.0f64..1.0,
    ) {
        let highest = ladder.highest();
        let used = |speed| projected_share(share(at_highest), highest, speed).min(Bandwidth::ONE);
        let mut speed = highest;
        let mut changes = 0;
        while let Some(next) = band.wants(used(speed), speed, &ladder) {
            prop_assert!(next < speed, "it never goes up again");
            speed = next;
            changes += 1;
        }
        prop_assert!(changes < ladder.speeds().count());
        prop_assert!(used(speed) <= band.high() || speed == highest);
    }

    /// The inputs come in any order: a lower speed is set only a longest period after the budgets
    /// were in force, and only if they fit there; and no speed that is not on the ladder.
    #[test]
    fn no_fall_comes_before_its_budgets_or_without_room_for_them(
        ladder in any_ladder(),
        rule in any_rule(),
        tasks in prop::collection::vec(any_task(), 0..6),
        happens in prop::collection::vec((0u8..5, 0.0f64..1.0, 1u64..300), 1..60),
    ) {
        let mut manager = PowerManager::new(rule, ladder.clone(), ladder.highest());
        let mut now = Instant::ZERO;
        let mut in_force: Option<(Instant, Span)> = None;
        for (what, value, ms) in happens {
            now = now + Span::from_ms(ms);
            let before = manager.present();
            let step = match what {
                0 | 1 => manager.sampled(share(value), &tasks, &LIMITS),
                2 => {
                    let longest = Span::from_ms(ms);
                    manager.budgets_in_force(now, longest);
                    in_force = in_force.or(Some((now, longest)));
                    None
                }
                3 => manager.pressed(&tasks, &LIMITS),
                _ => manager.due(now, &tasks, &LIMITS),
            };
            match step {
                Some(SpeedStep::RaiseBudgets(to)) => {
                    prop_assert!(to < before && manager.budgets_for() == to);
                    prop_assert!(projected_fit(&tasks, &LIMITS, before, to).is_ok());
                    in_force = None;
                }
                Some(SpeedStep::Rise(to)) => {
                    prop_assert!(to > before && ladder.speeds().any(|speed| speed == to));
                    prop_assert!(to == ladder.highest() || matches!(rule, ProtocolRule::Uniform(_)));
                    manager.switched(to);
                }
                Some(SpeedStep::Fall(to)) => {
                    prop_assert!(to < before && ladder.speeds().any(|speed| speed == to));
                    let (since, longest) = in_force.expect("budgets were in force");
                    prop_assert!(now >= since + longest);
                    prop_assert!(projected_fit(&tasks, &LIMITS, to, to).is_ok());
                    manager.switched(to);
                }
                Some(SpeedStep::Dismiss { to, .. }) => {
                    prop_assert!(to < before);
                    prop_assert_eq!(manager.budgets_for(), before);
                }
                None => {}
            }
            prop_assert!(manager.budgets_for() <= manager.present());
        }
    }
}
