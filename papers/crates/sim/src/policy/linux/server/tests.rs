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
