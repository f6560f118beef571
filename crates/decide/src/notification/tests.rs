use onbeat_model::{Instant, Span};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use super::*;

const PERIOD: Span = Span::from_ms(40);
const PLANNED: Span = Span::from_ms(10);

fn at(ms: u64) -> Instant {
    Instant::ZERO + Span::from_ms(ms)
}

/// One that sleeps three quarters of its time.
fn conservative() -> Notification {
    let mut notification = Notification::default();
    for _ in 0..100 {
        notification.blocked(Span::from_ms(30), Span::from_ms(10));
    }
    notification
}

/// Deadlines are the ends of the periods.
fn misses(notification: &mut Notification, job: u64) -> bool {
    let deadline = at(40 * (job + 1));
    notification.missed(deadline + Span::from_ms(1), deadline, PERIOD)
}

#[test]
fn a_thread_that_needs_more_gets_it_at_once_and_loses_it_when_it_needs_it_no_longer() {
    let mut honest = conservative();
    assert!(misses(&mut honest, 0));
    assert!(
        (honest.factor() - 1.1875).abs() < 1e-6,
        "{}",
        honest.factor()
    );
    for job in 1..20 {
        misses(&mut honest, job);
        honest.job(at(40 * (job + 1)), Span::from_ms(13), PLANNED);
        assert!(honest.factor() > 1.15, "job {job}: {}", honest.factor());
    }
    assert!(honest.factor() <= 1.0 + MOST);
    for job in 20..20 + u64::from(JURY) {
        honest.job(at(40 * (job + 1)), Span::from_ms(9), PLANNED);
    }
    assert_eq!(honest.factor(), 1.0);
}

#[test]
fn a_thread_that_never_sleeps_gets_nothing() {
    let mut hog = Notification::default();
    for _ in 0..100 {
        hog.blocked(Span::ZERO, Span::from_ms(40));
    }
    assert!((0..100).all(|job| !misses(&mut hog, job)));
    assert_eq!(hog.factor(), 1.0);
}

#[test]
fn what_cannot_be_a_miss_and_the_same_miss_again_are_not_believed() {
    let mut notification = conservative();
    let deadline = at(400);
    let mut says = |ms| notification.missed(at(ms), deadline, PERIOD);
    assert!(!says(380), "long before the deadline");
    assert!(!says(800), "long after it");
    assert!(says(395));
    assert!(!says(401), "it was said before");
}

proptest! {
    #![proptest_config(ProptestConfig {
        rng_seed: RngSeed::Fixed(17),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// A liar may cry anything at any time: what it holds in excess of its jobs' need adds up to
    /// less than one appeal for each doubling of the time.
    #[test]
    fn crying_wolf_gains_nothing_lasting(
        cries in prop::collection::vec((0_u64..40, 0_u64..3), 1..4000),
        slept in 0_u64..40,
    ) {
        let mut liar = Notification::default();
        for _ in 0..100 {
            liar.blocked(Span::from_ms(slept), Span::from_ms(40 - slept));
        }
        let (mut excess, mut n) = (0.0, 0_u64);
        for (offset, more) in &cries {
            n += 1;
            for cry in 0..=*more {
                let deadline = at(40 * n);
                liar.missed(at(40 * n + (offset + cry) % 40) - PERIOD / 2, deadline, PERIOD);
                prop_assert!((1.0..=1.0 + MOST).contains(&liar.factor()));
            }
            liar.job(at(40 * n + 39), Span::from_ms(9), PLANNED);
            excess += liar.factor() - 1.0;
        }
        let appeals = 1.0 + ((n * 40) as f64 / 2000.0 + 1.0).log2();
        prop_assert!(excess <= appeals * f64::from(JURY) * MOST, "{excess} in {n} jobs");
    }

    /// The cries of another thread are not heard: the state is each thread's own, and a flood
    /// changes nothing that its first cry did not.
    #[test]
    fn a_flood_is_worth_one_notification(flood in 1_usize..2000) {
        let (mut once, mut often) = (conservative(), conservative());
        misses(&mut once, 0);
        for _ in 0..flood {
            misses(&mut often, 0);
        }
        prop_assert_eq!(once.factor(), often.factor());
    }
}
