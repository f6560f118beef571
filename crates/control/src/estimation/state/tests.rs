use onbeat_model::{Instant, Rhythm, Span};

use super::*;
use crate::Settings;

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

/// A thread in each state of estimation after a change, with the period of its lock in ms.
fn after_each(change: impl Fn(&mut Estimation)) -> [String; 3] {
    let dormant = Estimation::Dormant(lock_of(40));
    [
        Estimation::Acquiring,
        Estimation::Locked(lock_of(40)),
        dormant,
    ]
    .map(|mut state| {
        change(&mut state);
        let period = |lock: &Lock| lock.rhythm().period.as_ns() / 1_000_000;
        match &state {
            Estimation::Acquiring => "acquiring".to_owned(),
            Estimation::Locked(lock) => format!("locked {}", period(lock)),
            Estimation::Dormant(lock) => format!("dormant {}", period(lock)),
        }
    })
}

#[test]
fn every_transition_of_estimation_leads_where_the_diagram_says() {
    assert_eq!(
        after_each(|state| state.lock_on(|dormant| dormant.unwrap_or_else(|| lock_of(25)))),
        ["locked 25", "locked 25", "locked 40"]
    );
    assert_eq!(
        after_each(Estimation::rest),
        ["acquiring", "dormant 40", "dormant 40"]
    );
    assert_eq!(
        after_each(Estimation::lose),
        ["acquiring", "acquiring", "dormant 40"]
    );
    assert_eq!(after_each(Estimation::forget), ["acquiring"; 3]);
}
