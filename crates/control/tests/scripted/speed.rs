use std::rc::Rc;

use crate::kernel::Kernel;
use crate::pipelines::task;
use crate::processor::{Processor, mhz};
use crate::world::{Ran, Script, at_ms, ms, play, play_asking, with};
use onbeat_control::{AtSpeed, PowerSettings, Settings, SpeedWhat, SpeedWhy, Why};
use onbeat_model::{Bandwidth, Instant, Refusal, Reservation, Span, Speed};

/// The situation of LFS++'s Fig. 10: a task with a period of 100 ms and a hog beside it that ends
/// at 20 s, on the paper's two speeds.
fn figure_10() -> Processor {
    let mut processor = Processor::new(&[1500, 2400]);
    processor.used = vec![(at_ms(0), 1.0), (at_ms(20_000), 0.16)];
    processor
}

fn play_on(processor: Processor) -> (Ran, Rc<Processor>) {
    play_beside(Bandwidth::ZERO, processor)
}

fn play_beside(others: Bandwidth, processor: Processor) -> (Ran, Rc<Processor>) {
    let (mut kernel, processor) = Kernel::on(processor);
    kernel.others = (others, Instant::from_ns(u64::MAX));
    let mut script = Script::default();
    script.periodic(7, ms(100), (at_ms(0), at_ms(40_000)), |_| ms(16));
    (play(script, kernel, with_speeds()), processor)
}

fn with_speeds() -> Settings {
    with(|it| it.power = Some(PowerSettings::default()))
}

fn in_force_at(ran: &Ran, at: Instant) -> Reservation {
    let entries = ran.of(7);
    let entry = entries.iter().rev().find(|entry| entry.at <= at).unwrap();
    entry.new.unwrap()
}

fn falls_at(processor: &Processor) -> Option<Instant> {
    let history = processor.history();
    let fall = history.iter().find(|(_, speed)| *speed == mhz(1500));
    fall.map(|&(at, _)| at)
}

fn near(a: Span, b: Span) -> bool {
    a.abs_diff(b) < Span::from_us(500)
}

#[test]
fn the_speed_falls_a_period_after_the_budget_was_raised_for_it() {
    let (ran, processor) = play_on(figure_10());
    let fell = falls_at(&processor).expect("it fell");
    assert!(fell >= at_ms(21_000), "{fell:?}");
    let raise = ran.first(7, |entry| matches!(entry.why, Why::SpeedFalls { .. }));
    let (old, new) = (raise.old.unwrap(), raise.new.unwrap());
    assert!(near(new.runtime(), old.runtime().scale(1.6)), "{old} {new}");
    let waited = fell.since(raise.at);
    assert!(
        waited >= new.period() && waited <= new.period() + ms(40),
        "{waited}"
    );
    let during = in_force_at(&ran, fell);
    assert!(near(during.runtime(), new.runtime()), "{during}");
}

#[test]
fn the_speed_rises_in_the_turn_in_which_the_load_is_seen_and_the_budget_follows() {
    let mut processor = figure_10();
    processor.used.push((at_ms(30_000), 1.0));
    let (ran, processor) = play_on(processor);
    let fell = falls_at(&processor).expect("it fell");
    let rise = processor
        .history()
        .into_iter()
        .find(|&(at, speed)| at > fell && speed == mhz(2400));
    let (rose, _) = rise.expect("it rose");
    assert!(rose <= at_ms(31_100), "{rose:?}");
    let after = in_force_at(&ran, rose + ms(500));
    assert!(after.runtime() <= ms(16).scale(1.3), "{after}");
    assert!(after.runtime() >= ms(16), "{after}");
}

#[test]
fn where_the_scheduler_follows_the_speed_no_runtime_is_changed_for_it() {
    let mut processor = figure_10();
    processor.runtimes_follow_speed = true;
    let (ran, processor) = play_on(processor);
    let fell = falls_at(&processor).expect("it fell");
    let counted = |from: Instant, to: Instant| {
        let within = ran.reserves(7).into_iter();
        within.filter(move |&(at, _)| at >= from && at <= to)
    };
    let (_, before) = counted(at_ms(0), at_ms(20_000)).next_back().unwrap();
    for (at, reservation) in counted(at_ms(20_000), at_ms(40_000)) {
        let same = near(reservation.runtime(), before.runtime());
        assert!(same, "{at:?}: {reservation}, before {before}");
    }
    let told = in_force_at(&ran, fell + ms(1000));
    assert!(told.runtime() >= ms(16).scale(1.6), "in plain time: {told}");
}

#[test]
fn a_requested_reservation_stays_whole_after_a_change_of_speed() {
    let mut script = Script::default();
    script.periodic(7, ms(100), (at_ms(0), at_ms(40_000)), |_| ms(4));
    // At the lower speed it needs more than the others leave.
    script.periodic(8, ms(50), (at_ms(26_000), at_ms(40_000)), |_| ms(20));
    let (kernel, processor) = Kernel::on(figure_10());
    let requested = Reservation::implicit(ms(45), ms(100)).unwrap();
    let mut is_granted = false;
    let ran = play_asking(script, kernel, with_speeds(), |controller, now| {
        if now >= at_ms(1000) && !std::mem::replace(&mut is_granted, true) {
            controller
                .grant(task(9, 9, "mixer"), requested, now)
                .unwrap();
        }
    });
    assert!(falls_at(&processor).is_some(), "{:#?}", ran.speeds);
    let gave_way = ran.of(8).into_iter();
    let gave_way = gave_way.filter(|entry| matches!(entry.why, Why::GaveWay { .. }));
    assert!(gave_way.count() > 0, "not all fits");
    for (at, reservation) in ran.reserves(9) {
        assert_eq!(reservation, requested, "{at:?}");
    }
}

#[test]
fn a_fall_is_given_up_if_the_kernel_refuses_the_budget_for_it() {
    // The task has what it needs now, and not what it would need.
    let (ran, processor) = play_beside(Bandwidth::from_cpus(0.73), figure_10());
    assert_eq!(falls_at(&processor), None, "{:#?}", ran.speeds);
    let told = ran.speeds.iter().map(|entry| entry.what);
    let given_up = told.filter(|what| *what == SpeedWhat::GivenUp).count();
    assert_eq!(given_up, 1, "and not tried every second: {:#?}", ran.speeds);
    let last = in_force_at(&ran, at_ms(39_000));
    assert!(last.runtime() >= ms(16), "{last}");
}

#[test]
fn a_speed_that_somebody_else_took_over_is_left_alone_from_then_on() {
    let mut processor = figure_10();
    processor.refusal = Some(Refusal::TakenOver {
        now: "another governor".to_owned(),
    });
    let (ran, processor) = play_on(processor);
    let refusals = ran.speeds.iter().filter(|e| e.what == SpeedWhat::Refused);
    assert_eq!(refusals.count(), 1, "{:#?}", ran.speeds);
    assert!(!processor.released.get());
    let last = in_force_at(&ran, at_ms(39_000));
    assert!(last.runtime() <= ms(16).scale(1.3), "{last}");
}

#[test]
fn the_log_and_the_report_tell_which_speed_there_was_and_why() {
    let (ran, processor) = play_on(figure_10());
    let told: Vec<SpeedWhat> = ran.speeds.iter().map(|entry| entry.what).collect();
    let expected = [
        SpeedWhat::Set,
        SpeedWhat::Announced,
        SpeedWhat::Set,
        SpeedWhat::Released,
    ];
    assert_eq!(told, expected, "{:#?}", ran.speeds);
    let change = &ran.speeds[2];
    assert_eq!(change.why, SpeedWhy::BudgetsInForce);
    assert_eq!((change.old, change.new), (Some(mhz(2400)), Some(mhz(1500))));
    assert!(processor.released.get());
    let at = |entry: &AtSpeed| (entry.speed, entry.time);
    let times: Vec<(Speed, Span)> = ran.report.speeds.iter().map(at).collect();
    assert_eq!((times[0].0, times[1].0), (mhz(1500), mhz(2400)));
    let sum: Span = times.iter().map(|&(_, time)| time).sum();
    assert!(sum <= ran.report.elapsed && sum + ms(100) >= ran.report.elapsed);
}
