use super::*;

fn ms(ms: u64) -> Span {
    Span::from_ms(ms)
}

fn at(ms: u64) -> Instant {
    Instant::ZERO + Span::from_ms(ms)
}

fn reservation(runtime: u64, deadline: u64, period: u64) -> Reservation {
    Reservation::new(ms(runtime), ms(deadline), ms(period)).unwrap()
}

#[test]
fn a_task_that_wakes_early_keeps_its_deadline_only_within_its_bandwidth() {
    let r = reservation(4, 10, 10);
    let mut server = CbsState::default();
    assert_eq!(server.wake(&r, at(0)), None);
    assert!(!server.charge(ms(2)));
    assert_eq!(server.wake(&r, at(5)), None);
    assert_eq!((server.deadline(), server.left()), (at(10), ms(2)));
    assert_eq!(server.wake(&r, at(6)), None);
    assert_eq!((server.deadline(), server.left()), (at(16), ms(4)));
}

#[test]
fn a_hard_server_waits_for_its_next_period_and_pays_back_what_it_overran() {
    let r = reservation(4, 10, 10);
    let mut server = CbsState::default();
    server.wake(&r, at(0));
    assert!(server.charge(ms(9)));
    assert_eq!(server.exhaust(&r, Overrun::Hard, at(9)), Some(at(10)));
    assert_eq!(
        server.wake(&r, at(9)),
        Some(at(10)),
        "waking changes nothing"
    );
    assert!(!server.timer(&r, at(9)));
    assert!(server.timer(&r, at(10)));
    assert_eq!((server.deadline(), server.left()), (at(30), ms(3)));
}

#[test]
fn a_soft_server_goes_on_with_a_later_deadline() {
    let r = reservation(4, 10, 10);
    let mut server = CbsState::default();
    server.wake(&r, at(0));
    assert!(server.charge(ms(4)));
    assert_eq!(server.exhaust(&r, Overrun::Soft, at(4)), None);
    assert_eq!((server.deadline(), server.left()), (at(20), ms(4)));
}

#[test]
fn a_constrained_deadline_that_is_over_makes_the_task_wait_for_its_period() {
    let r = reservation(2, 5, 20);
    let mut server = CbsState::default();
    server.wake(&r, at(0));
    server.charge(ms(1));
    assert_eq!(server.wake(&r, at(6)), Some(at(20)));
    assert!(server.timer(&r, at(20)));
    assert_eq!((server.deadline(), server.left()), (at(25), ms(2)));
}

#[test]
fn a_constrained_deadline_still_ahead_leaves_what_the_density_allows() {
    let r = reservation(2, 5, 20);
    let mut server = CbsState::default();
    server.wake(&r, at(0));
    assert_eq!(server.wake(&r, at(4)), None);
    assert_eq!(server.deadline(), at(5));
    assert_eq!(server.left(), Span::from_us(400));
}

#[test]
fn a_replenishment_that_comes_too_late_begins_anew() {
    let r = reservation(4, 10, 10);
    let mut server = CbsState::default();
    server.wake(&r, at(0));
    assert!(server.charge(ms(5)));
    assert_eq!(server.exhaust(&r, Overrun::Hard, at(35)), None);
    assert_eq!((server.deadline(), server.left()), (at(45), ms(4)));
}

#[test]
fn bandwidth_is_held_until_the_zero_lag_time() {
    let r = reservation(4, 10, 10);
    let mut server = CbsState::default();
    server.wake(&r, at(0));
    server.charge(ms(2));
    assert_eq!(server.zero_lag(&r), at(5));
}
