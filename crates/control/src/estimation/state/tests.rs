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
        settings.estimation.predictor,
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
