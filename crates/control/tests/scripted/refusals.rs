use crate::kernel::Kernel;
use crate::world::{Ran, Script, at_ms, ms, play, weighing, with};
use onbeat_control::{Settings, State, What, Why};
use onbeat_model::{Bandwidth, Refusal};

fn film() -> Script {
    let mut script = Script::default();
    script.periodic(7, ms(40), (at_ms(0), at_ms(10_000)), |_| ms(8));
    script
}

fn answered(refusals: Vec<Refusal>) -> Ran {
    let mut kernel = Kernel::with_cpus(2);
    kernel.answers.insert(7, refusals.into());
    play(film(), kernel, Settings::default())
}

#[test]
fn when_not_all_fits_weights_decide_the_cap_holds_and_the_log_says_who_gave_way() {
    let mut script = Script::default();
    for tid in [1, 2, 3] {
        script.tracked(tid, if tid == 3 { "heavy" } else { "light" }, at_ms(0));
        let from = at_ms(u64::from(tid) * 500);
        script.periodic(tid, ms(40), (from, at_ms(9000)), |_| ms(16));
    }
    let settings = with(|it| it.treat = weighing("heavy", 3.0));
    let ran = play(script, Kernel::with_cpus(1), settings);
    assert!(ran.kernel.most_held <= Bandwidth::from_cpus(0.85));
    let last = |tid| ran.last_held(tid).bandwidth();
    assert!(last(3) >= Bandwidth::from_cpus(0.4), "{}", last(3));
    assert!(last(1) <= Bandwidth::from_cpus(0.25), "{}", last(1));
    let words: Vec<String> = ran.of(1).iter().map(|e| e.why.to_string()).collect();
    assert!(words.iter().any(|w| w.contains("give way")), "{words:?}");
}

#[test]
fn there_is_room_again_when_one_of_them_ends() {
    let mut script = Script::default();
    script.periodic(1, ms(40), (at_ms(0), at_ms(12_000)), |_| ms(20));
    script.periodic(2, ms(40), (at_ms(200), at_ms(6000)), |_| ms(20));
    let ran = play(script, Kernel::with_cpus(1), Settings::default());
    let entries = ran.of(1);
    let squeezed = entries
        .iter()
        .any(|e| matches!(e.why, Why::GaveWay { .. }) && e.new.unwrap().runtime() < ms(19));
    assert!(squeezed, "{entries:#?}");
    assert!(ran.last_held(1).runtime() >= ms(20));
}

#[test]
fn a_thread_that_is_settling_is_asked_for_again_at_its_time_and_not_before() {
    let until = at_ms(3123);
    let ran = answered(vec![Refusal::Settling { until }]);
    let reserves = ran.reserves(7);
    assert!(reserves[0].0 < at_ms(600));
    assert!(
        reserves[1].0 >= until && reserves[1].0 <= until + ms(20),
        "{:?}",
        reserves[1]
    );
    assert_eq!(ran.of(7)[0].what, What::Reserved);
    assert_eq!(ran.report.threads[0].state, State::Kept);
}

#[test]
fn a_release_that_has_to_wait_is_made_at_its_time() {
    let mut kernel = Kernel::with_cpus(2);
    let until = at_ms(7777);
    kernel
        .release_answers
        .push_back(Refusal::Settling { until });
    let mut script = Script::default();
    script.periodic(7, ms(40), (at_ms(0), at_ms(4000)), |_| ms(8));
    script.periodic(8, ms(40), (at_ms(0), at_ms(9000)), |_| ms(8));
    let ran = play(script, kernel, Settings::default());
    let released = ran.first(7, |e| e.what == What::Released);
    assert!(matches!(released.why, Why::Idle { .. }), "{released:?}");
    assert!(
        released.at >= until && released.at <= until + ms(20),
        "{released:?}"
    );
}

#[test]
fn a_thread_that_somebody_else_changed_is_left_for_good() {
    let now = "SCHED_FIFO 10".to_owned();
    let ran = answered(vec![Refusal::TakenOver { now }]);
    assert_eq!(ran.kernel.asked.len(), 1, "{:?}", ran.kernel.asked);
    assert_eq!(ran.of(7)[0].what, What::TakenOver);
    assert!(ran.of(7)[0].why.to_string().contains("SCHED_FIFO 10"));
    assert_eq!(ran.report.threads[0].state, State::TakenOver);
}

#[test]
fn a_change_by_somebody_else_is_noticed_though_nothing_is_asked() {
    let mut kernel = Kernel::with_cpus(2);
    kernel.taken_over_at = Some((7, at_ms(5000)));
    let ran = play(film(), kernel, Settings::default());
    let entry = *ran.of(7).last().unwrap();
    assert_eq!(entry.what, What::TakenOver);
    assert!(entry.at <= at_ms(7000), "{entry:?}");
    assert!(ran.kernel.asked.iter().all(|&(at, _)| at < at_ms(7000)));
}

#[test]
fn a_refusal_with_advice_is_logged_once_and_tried_again_ever_more_rarely() {
    let refusal = || Refusal::NarrowAffinity {
        advice: "widen it with taskset".to_owned(),
    };
    let ran = answered((0..100).map(|_| refusal()).collect());
    let entries = ran.of(7);
    assert_eq!(entries.len(), 1, "{entries:#?}");
    assert!(entries[0].why.to_string().contains("taskset"));
    assert!((2..=5).contains(&ran.reserves(7).len()));
    assert_eq!(ran.report.threads[0].state, State::Refused);
}

#[test]
fn a_thread_that_is_gone_when_asked_for_is_forgotten() {
    let ran = answered(vec![Refusal::Gone]);
    assert!(ran.of(7).iter().all(|e| e.what != What::Refused));
}

#[test]
fn what_others_leave_is_taken_and_the_rest_when_they_are_gone() {
    let mut kernel = Kernel::with_cpus(1);
    kernel.others = (Bandwidth::from_cpus(0.8), at_ms(5000));
    let ran = play(film(), kernel, Settings::default());
    let entries = ran.of(7);
    assert_eq!(entries[0].what, What::Refused);
    let refused = entries.iter().filter(|e| e.what == What::Refused);
    assert_eq!(refused.count(), 1);
    assert_eq!(entries[1].what, What::Reserved);
    assert!(entries[1].at <= at_ms(500));
    assert!(entries[1].new.unwrap().bandwidth() <= Bandwidth::from_cpus(0.15));
    assert!(ran.last_held(7).runtime() >= ms(8));
    assert!(ran.reserves(7).len() < 40, "{}", ran.reserves(7).len());
}

#[test]
fn a_thread_that_wants_less_gives_way_before_another_is_raised() {
    let mut script = Script::default();
    let swap = |job: u64, first: bool| if (job < 60) == first { ms(18) } else { ms(7) };
    script.periodic(1, ms(40), (at_ms(0), at_ms(8000)), |job| swap(job, true));
    script.periodic(2, ms(40), (at_ms(0), at_ms(8000)), |job| swap(job, false));
    let ran = play(script, Kernel::with_cpus(1), Settings::default());
    let refused = ran.journal.iter().filter(|e| e.what == What::Refused);
    assert_eq!(refused.count(), 0, "{:#?}", ran.journal);
}
