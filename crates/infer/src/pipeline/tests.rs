//! Beside the rule, its slow twin: all contacts kept, jobs walked through one by one, and the
//! binomial tail as the sum over all outcomes of the tosses.

use super::MOST_EVERY;
use super::*;
use crate::synthetic::Random;

fn us(us: u64) -> Instant {
    Instant::ZERO + Span::from_us(us)
}

const PERIOD: Span = Span::from_ms(40);

fn heard(contacts: &[Instant]) -> Contacts {
    let mut heard = Contacts::new(PERIOD, Instant::ZERO);
    contacts.iter().for_each(|&at| heard.hear(at));
    heard
}

/// The share of outcomes of `of` tosses with fewer than `seen` heads, all outcomes gone through.
fn confidence_by_counting(seen: u64, of: u64) -> f64 {
    let fewer = (0..1_u64 << of).filter(|outcome| u64::from(outcome.count_ones()) < seen);
    fewer.count() as f64 / (1_u64 << of) as f64
}

#[test]
fn the_confidence_is_the_share_of_outcomes_with_fewer() {
    for of in 1..=16 {
        for seen in 0..=of {
            let (quick, slow) = (confidence(seen, of), confidence_by_counting(seen, of));
            assert!(
                (quick - slow).abs() < 1e-12,
                "{seen} of {of}: {quick} {slow}"
            );
        }
    }
    assert_eq!(confidence(0, 0), 0.0);
}

/// Jobs left out: walks from contact to contact by whole periods.
fn left_out_by_walking(contacts: &[Instant], period: Span, now: Instant) -> u64 {
    let mut left_out = 0;
    let mut last = Instant::ZERO;
    for &at in contacts.iter().chain([&now]) {
        let mut next = last + period + period / 2;
        while next <= at {
            left_out += 1;
            next = next + period;
        }
        last = at;
    }
    left_out
}

#[test]
fn what_is_left_out_is_what_walking_from_contact_to_contact_finds() {
    let mut noise = Random::new(3);
    for case in 0..200 {
        let mean = 5_000 + case * 600;
        let mut at = 0;
        let contacts: Vec<Instant> = std::iter::repeat_with(|| {
            at += 1 + noise.below(2 * mean);
            us(at)
        })
        .take_while(|&at| at < us(2_000_000))
        .collect();
        let (heard, now) = (heard(&contacts), us(2_000_000));
        for every in 1..=MOST_EVERY as u64 {
            let period = PERIOD * every;
            let quick =
                heard.left_out[every as usize - 1] + left_out_in(now.since(heard.last), period);
            assert_eq!(
                quick,
                left_out_by_walking(&contacts, period, now),
                "case {case}"
            );
        }
    }
}

#[test]
fn jitter_of_a_third_of_the_period_leaves_nothing_out() {
    let mut noise = Random::new(9);
    let contacts: Vec<Instant> = (1..=50)
        .map(|job| us(job * 40_000 + noise.below(13_000)))
        .collect();
    let standing = heard(&contacts).standing(us(2_010_000));
    assert_eq!(standing.map(|s| (s.every, s.of - s.seen)), Some((1, 0)));
}

/// How often, of 400 threads with contacts at random, one stands on the path at any of 20 looks.
fn taken_in(per_job: f64) -> usize {
    let mut noise = Random::new(per_job.to_bits());
    let stands = |_: &usize| {
        let mut heard = Contacts::new(PERIOD, Instant::ZERO);
        let mut at = 0.0;
        (1..=20).any(|look| {
            let until = f64::from(look) * 250_000.0;
            while at < until {
                heard.hear(us(at as u64));
                at += noise.exponential() * 40_000.0 / per_job;
            }
            heard.standing(us(until as u64)).is_some()
        })
    };
    (0..400).filter(stands).count()
}

#[test]
fn a_server_that_is_woken_at_no_rhythm_hardly_ever_stands_on_it() {
    for per_job in [0.05, 0.125, 0.25, 0.5, 0.75, 1.0] {
        let taken_in = taken_in(per_job);
        assert!(taken_in <= 8, "{per_job}: {taken_in} of 400");
    }
}

#[test]
fn nothing_is_sure_before_ten_jobs_and_nothing_panics_without_a_period() {
    let contacts: Vec<Instant> = (1..=5).map(|job| us(job * 40_000)).collect();
    assert_eq!(heard(&contacts).standing(us(200_000)), None);
    let mut none = Contacts::new(Span::ZERO, us(9));
    none.hear(us(3));
    none.hear(us(11));
    let _ = none.standing(us(1));
    assert_eq!(begin_of_work(std::iter::empty(), PERIOD), Instant::ZERO);
    assert_eq!(
        begin_of_work([us(7)].into_iter(), Span::ZERO),
        Instant::ZERO
    );
}

#[test]
fn work_begins_where_the_longest_rest_ends_also_across_the_border_of_the_period() {
    for begin in [0, 9_000, 33_000] {
        let wakeups =
            (0..20).flat_map(|job| (0..30).map(move |n| us(job * 40_000 + begin + n * 500)));
        assert_eq!(begin_of_work(wakeups, PERIOD), us(begin));
    }
}
