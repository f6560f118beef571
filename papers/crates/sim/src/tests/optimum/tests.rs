use onbeat_model::Speed;
use proptest::prelude::*;

use super::*;

fn job(release: u64, deadline: u64, work: u64) -> KnownJob {
    KnownJob {
        release: Instant::from_ns(release),
        deadline: Instant::from_ns(deadline),
        work: Work::at_full_speed(Span::from_ns(work)),
    }
}

fn ladder(mhz: &[u64]) -> Ladder {
    Ladder::new(mhz.iter().filter_map(|mhz| Speed::from_khz(mhz * 1000))).unwrap()
}

fn cubes(pieces: &[Piece]) -> f64 {
    let each = pieces.iter();
    each.map(|piece| piece.time.as_ns() as f64 * piece.speed.powi(3))
        .sum()
}

#[test]
fn the_busiest_interval_has_its_own_speed_and_the_rest_gets_what_time_it_leaves() {
    // From 40 to 60 there are 18 to do; around it 20 in the 80 that are left.
    let pieces = schedule(&[job(0, 100, 20), job(40, 60, 18), job(200, 210, 1)]);
    let speeds: Vec<(u64, f64)> = pieces.iter().map(|p| (p.time.as_ns(), p.speed)).collect();
    assert_eq!(speeds, [(20, 0.9), (80, 0.25), (10, 0.1)]);
}

#[test]
fn the_power_between_two_speeds_is_that_of_sharing_the_time() {
    let power = Power::default();
    let hull = Hull::of(&ladder(&[500, 1000]), false, &power);
    assert_eq!(hull.power(0.75), Some((0.125 + 1.0) / 2.0));
    assert_eq!(hull.power(0.25), Some(0.125 / 2.0));
    assert_eq!(hull.power(1.01), None);
}

#[test]
fn with_a_static_part_it_pays_to_hurry_and_sleep() {
    // f^3 / f is least at zero; (0.5 + 0.5 f^3) / f at the cube root of a half.
    let power = Power {
        fixed: 0.5,
        ..Power::default()
    };
    let hull = Hull::of(&ladder(&[100, 1000]), true, &power);
    let critical = 0.5_f64.cbrt();
    let at_critical = power.busy(critical);
    let found = hull.power(critical / 2.0).unwrap();
    assert!((found - at_critical / 2.0).abs() < 1e-6, "{found}");
    let found = hull.power(0.9).unwrap();
    assert!((found - power.busy(0.9)).abs() < 1e-6);
}

/// Spreads one job after the other as evenly as the others let it, until nothing changes.
fn water_filled(jobs: &[(usize, usize, u32)], slots: usize) -> f64 {
    let mut parts = vec![vec![0.0_f64; slots]; jobs.len()];
    for _ in 0..400 {
        for (number, &(from, to, work)) in jobs.iter().enumerate() {
            let others: Vec<f64> = (from..to)
                .map(|slot| {
                    let all = parts.iter().enumerate();
                    all.filter(|&(n, _)| n != number)
                        .map(|(_, p)| p[slot])
                        .sum()
                })
                .collect();
            let poured = |level: f64| -> f64 { others.iter().map(|o| (level - o).max(0.0)).sum() };
            let (mut low, mut high) = (0.0, 1000.0);
            for _ in 0..80 {
                let middle = (low + high) / 2.0;
                if poured(middle) < f64::from(work) {
                    low = middle;
                } else {
                    high = middle;
                }
            }
            for (slot, other) in (from..to).zip(others) {
                parts[number][slot] = (high - other).max(0.0);
            }
        }
    }
    (0..slots)
        .map(|slot| parts.iter().map(|part| part[slot]).sum::<f64>().powi(3))
        .sum()
}

const SLOT: u64 = 1000;
const SLOTS: usize = 5;

fn jobs(most: usize, work: u32) -> impl Strategy<Value = Vec<(usize, usize, u32)>> {
    let job = (0..SLOTS, 1..=SLOTS, 0..=work)
        .prop_map(|(from, length, work)| (from, (from + length).min(SLOTS), work));
    prop::collection::vec(job, 1..=most)
}

fn in_slots(drawn: &[(usize, usize, u32)]) -> Vec<KnownJob> {
    let at = |slot: usize| slot as u64 * SLOT;
    drawn
        .iter()
        .map(|&(from, to, work)| job(at(from), at(to), u64::from(work) * SLOT))
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..crate::tests::same_cases() })]

    #[test]
    fn spreading_job_after_job_evenly_comes_to_the_same(drawn in jobs(5, 9)) {
        let found = cubes(&schedule(&in_slots(&drawn)));
        let least = water_filled(&drawn, SLOTS) * SLOT as f64;
        prop_assert!((found - least).abs() <= least * 1e-3 + 1e-6, "{found}, {least}");
    }

    #[test]
    fn the_hull_is_never_above_a_speed_that_there_is(
        mhz in prop::collection::vec(1..1000_u64, 1..6),
        fixed in 0.0..1.0_f64,
        exponent in 1.0..4.0_f64,
        idle in 0.0..0.2_f64,
    ) {
        let power = Power { fixed, exponent, idle, ..Power::default() };
        let speeds = ladder(&mhz);
        let hull = Hull::of(&speeds, false, &power);
        for speed in speeds.speeds() {
            let ratio = speed.ratio(speeds.highest());
            prop_assert!(hull.power(ratio).unwrap() <= power.busy(ratio) + 1e-12);
        }
        let points: Vec<f64> = (0..=100_u32).map(|n| hull.power(f64::from(n) / 100.0).unwrap()).collect();
        prop_assert!(points.windows(3).all(|p| p[0] + p[2] >= 2.0 * p[1] - 1e-9), "convex");
    }
}
