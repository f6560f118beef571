use onbeat_model::Span;

use super::*;

fn at_ms(ms: u64) -> Instant {
    Instant::ZERO + Span::from_ms(ms)
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
