use proptest::prelude::*;

use super::*;

fn us(us: u64) -> Span {
    Span::from_us(us)
}

fn outlook(jobs: &[u64]) -> Outlook {
    let mut sorted: Vec<Span> = jobs.iter().map(|&job| us(job)).collect();
    sorted.sort_unstable();
    Outlook::new(&sorted, 1.0, sorted[sorted.len() - 1])
}

fn new_job(outlook: &Outlook, ends_in: Span) -> TaskStanding<'_> {
    TaskStanding {
        outlook,
        period: us(30_000),
        ends_in,
        job: Some(Progress {
            done: Span::ZERO,
            left: outlook.budget,
            late: false,
        }),
    }
}

#[test]
fn a_single_job_begins_at_the_speed_of_equation_12() {
    let outlook = outlook(&[2000, 3000, 3000, 4000, 8000]);
    // The jobs that go on behind 2, 3, 4, 8 ms are 4, 2, 1, 0 of five.
    let shares = [1.0, 0.8, 0.4, 0.2_f64];
    let sizes = [2.0, 1.0, 1.0, 4.0];
    let effective: f64 = sizes
        .iter()
        .zip(shares)
        .map(|(size, share)| size * share.cbrt())
        .sum();
    let wish = wish(&[new_job(&outlook, us(20_000))]);
    assert!((wish.speed - effective / 20.0).abs() < 1e-9, "{wish:?}");
    assert_eq!(wish.laxity, us(12_000));
}

#[test]
fn a_deadline_that_is_near_counts_more_than_one_behind_it() {
    let (short, long) = (outlook(&[1000]), outlook(&[2000]));
    let wish = wish(&[new_job(&short, us(1250)), new_job(&long, us(20_000))]);
    // Behind the short one's end it has the CPU for part of its next period, too.
    assert_eq!(wish.speed, 0.8);
    assert_eq!(wish.laxity, us(250));
}

#[test]
fn who_waits_for_his_next_release_counts_from_there_on() {
    let (idle, busy) = (outlook(&[3000]), outlook(&[2000]));
    let waits = TaskStanding {
        job: None,
        ..new_job(&idle, us(5_000))
    };
    let wish = wish(&[waits, new_job(&busy, us(20_000))]);
    // Half of a period of it lies before the end.
    assert!(
        (wish.speed - (2000.0 + 1500.0) / 20_000.0).abs() < 1e-9,
        "{wish:?}"
    );
    assert_eq!(wish.laxity, us(20_000 - 2000 - 1500));
}

/// The least expected energy of pieces one after the other within `steps`: each piece takes a
/// number of steps, and after it a share of jobs goes on. The twin: it tries everything.
fn tried(
    pieces: &[(f64, f64, usize)],
    at: usize,
    steps: usize,
    known: &mut [Vec<Option<f64>>],
) -> f64 {
    let Some(&(size, on, otherwise)) = pieces.get(at) else {
        return 0.0;
    };
    if let Some(known) = known[at][steps] {
        return known;
    }
    let mut least = f64::INFINITY;
    for taken in 1..=steps {
        let left = steps - taken;
        let own = size.powi(3) / (taken as f64).powi(2);
        let mut expected = |share: f64, next| {
            if share > 0.0 {
                share * tried(pieces, next, left, known)
            } else {
                0.0
            }
        };
        least = least.min(own + expected(on, at + 1) + expected(1.0 - on, otherwise));
    }
    known[at][steps] = Some(least);
    least
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..crate::tests::same_cases() })]

    #[test]
    fn with_one_deadline_no_other_speeds_take_less_energy(
        first in prop::collection::vec(1..8_u64, 1..5),
        second in prop::collection::vec(1..8_u64, 1..5),
    ) {
        let outlooks = [first, second].map(|jobs| {
            let jobs: Vec<u64> = jobs.iter().map(|job| job * 1000).collect();
            outlook(&jobs)
        });
        let steps = 400;
        let tasks = outlooks.each_ref().map(|outlook| new_job(outlook, us(steps as u64 * 1000)));
        let effective = wish(&tasks).speed * steps as f64;
        let mut pieces = Vec::new();
        let behind_first = outlooks[0].groups.len();
        for (number, outlook) in outlooks.iter().enumerate() {
            let otherwise = behind_first + number * outlook.groups.len();
            let mut before = 1.0;
            for group in &outlook.groups {
                pieces.push((group.size.as_ns() as f64 / 1e6, group.beyond / before, otherwise));
                before = group.beyond;
            }
        }
        let mut known = vec![vec![None; steps + 1]; pieces.len()];
        let least = tried(&pieces, 0, steps, &mut known);
        let found = effective.powi(3) / (steps as f64).powi(2);
        prop_assert!((found / least - 1.0).abs() < 0.01, "{found}, {least}");
    }
}
