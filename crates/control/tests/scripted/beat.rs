//! Finding a rhythm, keeping a reservation around it, following it,
//! and letting go.

use crate::kernel::{Asked, Kernel};
use crate::world::{Noise, Script, at_ms, ms, play};
use onbeat_control::{Settings, State, What, Why};
use onbeat_model::{Event, Instant, Said, Span, TaskId};

fn film() -> Script {
    let mut script = Script::default();
    script.tracked(7, "player", at_ms(990));
    let mut noise = Noise(3);
    script.periodic(7, ms(40), (at_ms(1000), at_ms(11_000)), |_| {
        ms(8) + noise.up_to(ms(2))
    });
    script
}

pub(crate) fn of_film(script: Script) -> crate::world::Ran {
    play(script, Kernel::with_cpus(2), Settings::default())
}

#[test]
fn a_film_has_its_reservation_within_ten_jobs() {
    let ran = of_film(film());
    let first = ran.of(7)[0];
    assert_eq!(first.what, What::Reserved);
    assert!(matches!(first.why, Why::Found { .. }), "{first:?}");
    assert!(first.at <= at_ms(1500), "{first:?}");
    let reservation = first.new.unwrap();
    assert!(
        reservation.period().abs_diff(ms(40)) < Span::from_us(400),
        "{reservation}"
    );
    assert!(
        reservation.runtime() >= ms(9),
        "generous at first: {reservation}"
    );
}

#[test]
fn the_reservation_shrinks_to_fit_and_the_report_has_the_figures() {
    let ran = of_film(film());
    let last = ran.last_held(7).runtime();
    assert!((ms(9)..=ms(12)).contains(&last), "{last}");
    let report = &ran.report.threads[0];
    let reservations = &report.reservations;
    assert!(reservations.changes <= 12, "left in peace: {report:?}");
    let ratio = reservations.bandwidth_reserved.as_cpus() / reservations.bandwidth_used.as_cpus();
    assert!((1.0..1.35).contains(&ratio), "{ratio}");
    assert!(
        reservations.reserved_after.unwrap() <= ms(510),
        "{report:?}"
    );
    assert_eq!((report.state, report.counted.missed), (State::Kept, 0));
    assert!((230..=250).contains(&report.counted.jobs), "{report:?}");
    let response = report.response_time.unwrap();
    assert!(response.p50_ns >= ms(8) && response.max_ns <= ms(11));
    assert_eq!(ran.report.lost_events, 0);
}

#[test]
fn a_budget_that_ran_out_is_raised_in_the_same_turn() {
    let mut script = film();
    script.exhausted(7, at_ms(6009));
    let ran = of_film(script);
    let raise = ran.first(7, |e| e.why == Why::Exhausted);
    assert_eq!((raise.at, raise.what), (at_ms(6009), What::Changed));
    assert!(raise.new.unwrap().runtime() > raise.old.unwrap().runtime());
    let later = ran.last_held(7).runtime();
    assert!(later < raise.new.unwrap().runtime(), "not for ever");
}

#[test]
fn a_change_of_rate_is_planned_for_within_a_few_jobs() {
    let mut script = Script::default();
    script.periodic(7, ms(40), (at_ms(0), at_ms(5000)), |_| ms(8));
    let thirty = Span::from_ns(33_366_700);
    script.periodic(7, thirty, (at_ms(5000), at_ms(10_000)), |_| ms(8));
    let ran = of_film(script);
    let change = ran.first(7, |entry| matches!(entry.why, Why::RateChanged { .. }));
    assert!(change.at <= at_ms(5000) + thirty * 12, "{change:?}");
    let period = change.new.unwrap().period();
    assert!(period.abs_diff(thirty) < thirty / 50, "{period}");
    assert!(
        !ran.of(7)
            .iter()
            .any(|e| e.what == What::Released && e.why != Why::Finished)
    );
}

#[test]
fn a_thread_without_rhythm_is_never_touched() {
    let mut script = Script::default();
    script.random(9, ms(12), (at_ms(0), at_ms(20_000)));
    let ran = of_film(script);
    assert_eq!(ran.reserves(9), []);
    assert_eq!((ran.report.threads.len(), ran.report.left_alone), (0, 1));
}

#[test]
fn a_thread_that_loses_its_rhythm_is_given_back() {
    let mut script = Script::default();
    script.periodic(7, ms(20), (at_ms(0), at_ms(4000)), |_| ms(4));
    script.random(7, ms(12), (at_ms(4000), at_ms(20_000)));
    let ran = of_film(script);
    let released = ran.first(7, |e| e.what == What::Released);
    assert_eq!(released.why, Why::RhythmLost);
    assert!(released.at < at_ms(10_000), "{released:?}");
    assert!(ran.report.threads[0].reservations.held < ms(10_000));
}

/// When a film's thread, which turns to computing at second 4, was given back, and why.
fn turned_to_computing(script: impl FnOnce(&mut Script)) -> (Instant, Why) {
    let mut whole = Script::default();
    whole.periodic(7, ms(40), (at_ms(0), at_ms(4000)), |_| ms(16));
    script(&mut whole);
    let ran = of_film(whole);
    let released = ran.first(7, |e| e.what == What::Released);
    (released.at, released.why.clone())
}

#[test]
fn a_thread_that_no_longer_blocks_is_given_back_though_its_budget_runs_out_each_period() {
    let (at, why) = turned_to_computing(|script| {
        for period in 1..500 {
            script.exhausted(7, at_ms(4000 + 40 * period));
        }
    });
    assert!(matches!(why, Why::NoLongerBlocks { .. }), "{why:?}");
    assert!(at > at_ms(4370) && at < at_ms(6000), "{at:?}");
}

#[test]
fn a_thread_that_computes_all_the_time_keeps_nothing_for_long_by_saying_that_it_is_late() {
    let computes = |script: &mut Script| {
        let woke = at_ms(4000);
        for cry in (1..12_000).map(ms) {
            script.says(7, Said::MissedDeadline, woke + cry, (woke, cry));
        }
        script.burst(7, woke, ms(12_000));
    };
    let (crying, why) = turned_to_computing(computes);
    assert!(matches!(why, Why::NoLongerBlocks { .. }), "{why:?}");
    assert!(crying < at_ms(6000), "{crying:?}");
}

#[test]
fn a_paused_film_is_given_back_and_is_reserved_for_soon_after_it_goes_on() {
    let mut script = Script::default();
    script.periodic(7, ms(40), (at_ms(0), at_ms(4000)), |_| ms(8));
    script.periodic(8, ms(25), (at_ms(0), at_ms(20_000)), |_| ms(1));
    script.periodic(7, ms(40), (at_ms(14_013), at_ms(20_000)), |_| ms(8));
    let ran = of_film(script);
    let released = ran.first(7, |e| e.what == What::Released);
    assert!(matches!(released.why, Why::Idle { .. }), "{released:?}");
    let goes_on = at_ms(14_013);
    let again = ran.first(7, |e| e.what == What::Reserved && e.at > goes_on);
    assert!(again.at <= goes_on + ms(500), "{again:?}");
}

#[test]
fn a_thread_that_ends_is_forgotten_and_its_room_is_free() {
    let mut script = film();
    let task = TaskId::recorded(7);
    script.exits(7, at_ms(11_000));
    script.periodic(8, ms(10), (at_ms(1000), at_ms(12_000)), |_| ms(1));
    let ran = of_film(script);
    let is_asked = |what| ran.kernel.asked.iter().any(|&(_, asked)| asked == what);
    assert!(is_asked(Asked::Ended(task)) && !is_asked(Asked::Release(task)));
    let mut threads = ran.report.threads.iter();
    let report = threads.find(|r| r.task.id == task).unwrap();
    assert_eq!(report.state, State::Ended);
    assert!(report.counted.jobs > 230);
}

#[test]
fn lost_events_are_counted_and_break_nothing() {
    let mut script = film();
    for (at, count) in [(at_ms(500), 2), (at_ms(3000), 5)] {
        script.event(Event::Lost { at, count });
    }
    script.exhausted(99, at_ms(3000));
    script.exits(98, at_ms(3000));
    script.burst(97, at_ms(3000), ms(1));
    let ran = of_film(script);
    assert_eq!(ran.report.lost_events, 7);
    assert_eq!(ran.report.threads[0].state, State::Kept);
}
