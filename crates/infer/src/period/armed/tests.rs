use onbeat_model::TaskId;

use super::*;
use crate::synthetic::Random;

const PERIOD: u64 = 3_505_000;
const BEGAN: u64 = 77_123_456_789;

fn woken(expiry: u64, late: u64) -> Burst {
    let woke = Instant::from_ns(expiry + late);
    Burst {
        expiry: Some(Instant::from_ns(expiry)),
        ..Burst::pulse(TaskId::recorded(1), woke)
    }
}

fn of(expiries: &[u64]) -> Option<Rhythm> {
    rhythm(expiries.iter().map(|&expiry| woken(expiry, 50_000)))
}

/// The coarsest grid through the last expiries by trying every number of beats, for every number of
/// expiries.
fn twin(expiries: &[u64]) -> Option<u64> {
    for count in (3..=expiries.len().min(7)).rev() {
        let last = &expiries[expiries.len() - count..];
        for beats in count as u64 - 1..=2 * count as u64 - 4 {
            let period = (last[count - 1] - last[0]) as f64 / beats as f64;
            let on_grid = |expiry: &u64| {
                let beat = (expiry - last[0]) as f64 / period;
                (beat - beat.round()).abs() * period <= 1.0 + 1e-6
            };
            if last.iter().all(on_grid) && period > 0.5e6 && period < 1e9 {
                return Some(period.round() as u64);
            }
        }
    }
    None
}

#[test]
fn three_absolute_sleeps_have_a_rhythm_however_late_the_thread_wakes() {
    let expiries = [1, 2, 3].map(|beat| BEGAN + beat * PERIOD);
    let late = [90_000_000, 180_000_000, 40_000];
    let bursts = expiries.iter().zip(late).map(|(&e, late)| woken(e, late));
    let found = rhythm(bursts).unwrap();
    assert_eq!(found.period, Span::from_ns(PERIOD));
    assert_eq!(found.phase, Instant::from_ns(expiries[2]));
    assert_eq!(found.jitter, Span::from_ns(40_000));
    assert!(found.confidence > 0.99, "{}", found.confidence);
    assert_eq!(of(&expiries[1..]), None);
}

#[test]
fn a_period_that_is_no_whole_number_of_nanoseconds_is_found() {
    for count in 3..20_u64 {
        let expiries: Vec<u64> = (0..count).map(|i| BEGAN + i * 1_000_000_000 / 60).collect();
        let found = of(&expiries).unwrap();
        assert!(found.period.as_ns().abs_diff(16_666_667) <= 1, "{found:?}");
    }
}

#[test]
fn four_expiries_after_a_change_of_rate_show_the_new_one() {
    let mut expiries: Vec<u64> = (0..20).map(|beat| BEGAN + beat * 10_000_000).collect();
    for beat in 0..4 {
        let enough = of(&expiries).is_some_and(|r| r.confidence >= 0.99);
        assert_eq!(enough, beat == 0 || beat == 3, "{beat}");
        expiries.push(expiries.last().unwrap() + 4_000_000);
    }
    let found = of(&expiries).unwrap();
    assert_eq!(found.period, Span::from_ns(4_000_000));
    assert!(found.confidence > 0.999);
}

#[test]
fn what_is_no_grid_of_possible_periods_is_none() {
    for expiries in [
        &[][..],
        &[5; 9],
        &[BEGAN, BEGAN - PERIOD, BEGAN - 2 * PERIOD],
        &[0, 100_000, 200_000, 300_000],
        &[0, u64::MAX / 2, u64::MAX - 60_000],
        &[0, 600_000, u64::MAX - 60_000],
        &[0, 2_000_000_000, 4_000_000_000],
        &[0, PERIOD, 2 * PERIOD + 3],
    ] {
        assert_eq!(of(expiries), None, "{expiries:?}");
    }
}

#[test]
fn the_slow_twin_finds_the_same_grids() {
    let mut random = Random::new(42);
    let mut found = 0;
    for _ in 0..20_000 {
        let period = 600_000 + random.below(90_000_000);
        let mut at = BEGAN;
        let expiries: Vec<u64> = (0..3 + random.below(6))
            .map(|_| {
                let gap = [1, 1, 1, 1, 2, 3][random.below(6) as usize];
                let off = [0, 0, 0, 0, 0, 0, 1, 5][random.below(8) as usize];
                at += gap * period + off;
                at
            })
            .collect();
        let period = of(&expiries).map(|rhythm| rhythm.period.as_ns());
        assert_eq!(period, twin(&expiries), "{expiries:?}");
        found += u32::from(period.is_some());
    }
    assert!((5_000..20_000).contains(&found), "{found}");
}

/// In how many of 200,000 windows of `count` expiries a rhythm is found with the confidence that
/// a first analysis asks for. `asks` is the time from one sleep to the next.
fn false_alarms(count: usize, mut asks: impl FnMut(&mut Random) -> u64) -> usize {
    let mut random = Random::new(7);
    let mut at = BEGAN;
    let expiries: Vec<u64> = (0..200_000)
        .map(|_| {
            at += asks(&mut random);
            at
        })
        .collect();
    expiries
        .windows(count)
        .filter(|window| of(window).is_some_and(|rhythm| rhythm.confidence >= 0.99))
        .count()
}

#[test]
fn sleeps_for_a_time_with_varying_work_and_sporadic_ones_have_no_rhythm() {
    let kinds: [fn(&mut Random) -> u64; 2] = [
        |random| 10_000_000 + random.below(2_000_000),
        |random| 1_000_000 + random.below(30_000_000),
    ];
    for asks in kinds {
        assert!(false_alarms(3, asks) <= 3, "3 in 2,000,000 each");
        assert_eq!(false_alarms(7, asks), 0);
    }
}

/// The least spread that the model allows for, as of timeouts of a thread that does nothing else.
#[test]
fn the_confidence_is_right_for_the_quietest_thread_that_sleeps_for_a_time() {
    let timeout = |random: &mut Random| 100_000_000 + random.below(1_000);
    let alarms = false_alarms(3, timeout);
    assert!((200..=1_200).contains(&alarms), "{alarms}");
    assert!(false_alarms(7, timeout) < 200);
}
