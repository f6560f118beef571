use onbeat_model::{Rhythm, Span};

use super::*;
use crate::Settings;

fn at_ms(ms: u64) -> Instant {
    Instant::ZERO + Span::from_ms(ms)
}

fn lock_of(period_ms: u64) -> Box<Lock> {
    let settings = Settings::default();
    let rhythm = Rhythm {
        period: Span::from_ms(period_ms),
        phase: Instant::ZERO,
        jitter: Span::ZERO,
        confidence: 1.0,
    };
    let none = std::iter::empty();
    Box::new(Lock::new(
        rhythm,
        none,
        Instant::ZERO,
        settings.predictor,
        &settings,
    ))
}

/// A thread in each state of estimation; the dormant locks have a period of 40 ms.
fn each_estimation() -> [Estimation; 5] {
    let probation = |dormant| {
        Estimation::Probation(Probation {
            since: at_ms(1),
            terms: None,
            dormant,
        })
    };
    [
        Estimation::Acquiring,
        probation(None),
        probation(Some(lock_of(40))),
        Estimation::Locked(Locked {
            lock: lock_of(40),
            from_probation: false,
        }),
        Estimation::Dormant(lock_of(40)),
    ]
}

/// The state's name, with the period of its lock in milliseconds.
fn name(state: &Estimation) -> String {
    let period = |lock: &Lock| lock.rhythm().period.as_ns() / 1_000_000;
    match state {
        Estimation::Acquiring => "acquiring".to_owned(),
        Estimation::Probation(probation) => match &probation.dormant {
            None => "probation".to_owned(),
            Some(lock) => format!("probation {}", period(lock)),
        },
        Estimation::Locked(locked) => {
            let how = if locked.from_probation { " shown" } else { "" };
            format!("locked {}{how}", period(&locked.lock))
        }
        Estimation::Dormant(lock) => format!("dormant {}", period(lock)),
    }
}

fn after_each(change: impl Fn(&mut Estimation)) -> [String; 5] {
    each_estimation().map(|mut state| {
        change(&mut state);
        name(&state)
    })
}

#[test]
fn every_transition_of_estimation_leads_where_the_diagram_says() {
    assert_eq!(
        after_each(|_| {}),
        [
            "acquiring",
            "probation",
            "probation 40",
            "locked 40",
            "dormant 40"
        ]
    );
    assert_eq!(
        after_each(|state| state.begin_probation(at_ms(5), None)),
        [
            "probation",
            "probation",
            "probation 40",
            "locked 40",
            "probation 40"
        ]
    );
    assert_eq!(
        after_each(Estimation::end_probation),
        [
            "acquiring",
            "acquiring",
            "dormant 40",
            "locked 40",
            "dormant 40"
        ]
    );
    assert_eq!(
        after_each(|state| state.lock_on(|dormant| dormant.unwrap_or_else(|| lock_of(25)))),
        [
            "locked 25",
            "locked 25 shown",
            "locked 40 shown",
            "locked 25",
            "locked 40"
        ]
    );
    assert_eq!(
        after_each(Estimation::rest),
        [
            "acquiring",
            "probation",
            "probation 40",
            "dormant 40",
            "dormant 40"
        ]
    );
    assert_eq!(
        after_each(Estimation::lose),
        [
            "acquiring",
            "probation",
            "probation 40",
            "acquiring",
            "dormant 40"
        ]
    );
    assert_eq!(
        after_each(Estimation::leave_pipeline),
        [
            "acquiring",
            "probation",
            "probation",
            "acquiring",
            "acquiring"
        ]
    );
    assert_eq!(after_each(Estimation::forget), ["acquiring"; 5]);
}

#[test]
fn a_probation_that_goes_on_keeps_its_beginning_and_its_terms() {
    let terms = Terms {
        share: onbeat_model::Bandwidth::ONE,
        period: Span::from_ms(10),
    };
    let mut state = Estimation::Acquiring;
    state.begin_probation(at_ms(5), Some(terms));
    state.begin_probation(at_ms(9), None);
    let probation = state.probation().unwrap();
    assert_eq!((probation.since, probation.terms), (at_ms(5), Some(terms)));
}

fn reservation(runtime_ms: u64) -> Reservation {
    Reservation::implicit(Span::from_ms(runtime_ms), Span::from_ms(40)).unwrap()
}

fn pending() -> PendingRelease {
    PendingRelease::new(Why::RhythmLost, Some(reservation(5)), at_ms(1000))
}

/// A thread in each state of enforcement; the back-offs end at 100 ms.
fn each_enforcement() -> [Enforcement; 8] {
    let back_off = |in_force| Enforcement::BackOff {
        in_force,
        until: at_ms(100),
        reason: Some(Why::RoomAgain),
    };
    [
        Enforcement::Open(InForce::None),
        Enforcement::Open(InForce::Held(reservation(5))),
        Enforcement::Open(InForce::ReleasePending(pending())),
        back_off(InForce::None),
        back_off(InForce::Held(reservation(5))),
        back_off(InForce::ReleasePending(pending())),
        Enforcement::Yielded,
        Enforcement::Gone,
    ]
}

fn word(state: &Enforcement) -> String {
    let in_force = |in_force: &InForce| match in_force {
        InForce::None => "none".to_owned(),
        InForce::Held(held) => format!("held {}", held.runtime().as_ns() / 1_000_000),
        InForce::ReleasePending(_) => "pending".to_owned(),
    };
    match state {
        Enforcement::Open(inner) => in_force(inner),
        Enforcement::BackOff {
            in_force: inner,
            until,
            ..
        } => format!(
            "{} until {}",
            in_force(inner),
            until.since(Instant::ZERO).as_ns() / 1_000_000
        ),
        Enforcement::Yielded => "yielded".to_owned(),
        Enforcement::Gone => "gone".to_owned(),
    }
}

fn enforced_after_each(change: impl Fn(&mut Enforcement)) -> [String; 8] {
    each_enforcement().map(|mut state| {
        change(&mut state);
        word(&state)
    })
}

#[test]
fn every_transition_of_enforcement_leads_where_the_diagram_says() {
    let same = [
        "none",
        "held 5",
        "pending",
        "none until 100",
        "held 5 until 100",
        "pending until 100",
        "yielded",
        "gone",
    ];
    assert_eq!(enforced_after_each(|_| {}), same);
    assert_eq!(
        enforced_after_each(|state| state.reserve(reservation(7))),
        ["held 7"; 8]
    );
    assert_eq!(
        enforced_after_each(Enforcement::released),
        [
            "none",
            "none",
            "none",
            "none until 100",
            "none until 100",
            "none until 100",
            "yielded",
            "gone",
        ]
    );
    assert_eq!(
        enforced_after_each(|state| state.release_failed(pending())),
        [
            "pending",
            "pending",
            "pending",
            "pending until 100",
            "pending until 100",
            "pending until 100",
            "yielded",
            "gone",
        ]
    );
    assert_eq!(
        enforced_after_each(|state| state.back_off(at_ms(200), None)),
        [
            "none until 200",
            "held 5 until 200",
            "pending until 200",
            "none until 200",
            "held 5 until 200",
            "pending until 200",
            "yielded",
            "gone",
        ]
    );
    let retry = |at| move |state: &mut Enforcement| drop(state.retry(at));
    assert_eq!(enforced_after_each(retry(at_ms(99))), same);
    assert_eq!(
        enforced_after_each(retry(at_ms(100))),
        [
            "none", "held 5", "pending", "none", "held 5", "pending", "yielded", "gone",
        ]
    );
    assert_eq!(
        enforced_after_each(Enforcement::yield_to_other),
        ["yielded"; 8]
    );
    assert_eq!(enforced_after_each(Enforcement::gone), ["gone"; 8]);
}

#[test]
fn a_back_off_hands_over_its_reason_once() {
    let mut state = Enforcement::default();
    assert_eq!(state.retry(at_ms(100)), None);
    state.back_off(at_ms(100), Some(Why::RhythmLost));
    assert_eq!(state.retry(at_ms(99)), None);
    assert_eq!(state.retry(at_ms(100)), Some(Some(Why::RhythmLost)));
    assert_eq!(state.retry(at_ms(100)), None);
}
