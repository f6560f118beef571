//! The worth of a reservation: a soft one, which is the default, and a hard one, as with `--hard`.

use onbeat_model::{Actuator, Instant, Reservation, Sensor, Span};
use onbeat_sim::Workload;
use onbeat_sim::loop_adapter::{SensedEvents, machine_of, seams, tasks};
use onbeat_sim::policy::linux::{Class, Config, Fair};
use onbeat_sim::workload::{Arrival, Demand};

const SECONDS: u64 = 4;

/// The CPU time of a hog that has 8 ms in every 40 beside one that has nothing.
fn had(is_hard: bool) -> Span {
    let hog = Workload::new(Arrival::Always, Demand::constant(Span::from_ms(10)));
    let programs = [hog.clone(), hog].map(|hog| (Class::Fair(Fair::nice(0)), hog));
    let hogs = tasks(2);
    let observer = (SensedEvents::new(hogs.clone()), ());
    let machine = machine_of(Config::global(1), programs, observer);
    let ends = Instant::ZERO + Span::from_secs(SECONDS);
    let (mut sensor, mut actuator) = seams(machine, 1, None, ends);
    if is_hard {
        actuator = actuator.hard();
    }
    let period = Span::from_ms(40);
    let reservation = Reservation::new(Span::from_ms(8), period, period).unwrap();
    actuator.reserve(hogs[0].id, reservation).unwrap();
    let Ok(_) = sensor.poll(Span::from_secs(SECONDS), &mut Vec::new());
    sensor.executed(hogs[0].id).unwrap()
}

#[test]
fn a_hog_has_its_hard_reservation_and_with_a_soft_one_all_that_is_not_reserved() {
    let whole = Span::from_secs(SECONDS);
    assert_eq!(had(true), whole / 5);
    let reclaimed = had(false);
    assert!(
        reclaimed >= whole * 94 / 100 && reclaimed <= whole * 95 / 100,
        "{reclaimed}"
    );
}
