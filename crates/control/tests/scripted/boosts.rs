//! Threads without a rhythm that say they were late: boosted within bounds, and never for long
//! without need.

use crate::kernel::{Asked, Kernel};
use crate::world::{Noise, Ran, Script, at_ms, ms, play};
use onbeat_control::{BoostWhat, BoostWhy, Settings, What};
use onbeat_model::{Instant, Refusal, Said, Span, TaskId};

/// Jobs of 3 ms at moments without a pattern, 12 ms apart in the mean; after each, the thread says
/// that it was late.
fn cries(script: &mut Script, tid: u32, (from, until): (Instant, Instant)) {
    let mut noise = Noise(u64::from(tid));
    let (mut woke, mut executed) = (from, Span::ZERO);
    while woke < until {
        executed += ms(3);
        let ended = woke + ms(3) + Span::from_us(10);
        script.says(tid, Said::MissedDeadline, ended, (woke, executed));
        script.burst(tid, woke, ms(3));
        woke = ended + ms(1) + noise.up_to(ms(22));
    }
}

fn crier(until: u64) -> Script {
    let mut script = Script::default();
    script.tracked(7, "game", at_ms(990));
    cries(&mut script, 7, (at_ms(1000), at_ms(until)));
    script
}

fn play_here(script: Script) -> Ran {
    play(script, Kernel::with_cpus(2), Settings::default())
}

fn asked_boosts(ran: &Ran) -> usize {
    let boost = |asked: &&(Instant, Asked)| matches!(asked.1, Asked::Boost(..));
    ran.kernel.asked.iter().filter(boost).count()
}

#[test]
fn a_thread_without_a_rhythm_is_boosted_once_it_is_known_to_sleep() {
    let ran = play_here(crier(5000));
    let first = &ran.boosts[0];
    assert_eq!(
        (first.what, &first.why),
        (BoostWhat::Boosted, &BoostWhy::MissedDeadline)
    );
    assert_eq!(
        (first.task.id, first.old_boost),
        (TaskId::recorded(7), None)
    );
    let levels = ran
        .boosts
        .iter()
        .filter_map(|entry| Some(entry.new_boost?.levels));
    assert!(levels.clone().all(|levels| (1..=5).contains(&levels)));
    assert!(levels.max() >= Some(3));
    assert_eq!((ran.report.boosted, ran.report.left_alone), (1, 1));
    let last = ran.boosts.last().unwrap();
    assert_eq!(
        (last.what, &last.why, last.new_boost),
        (BoostWhat::BoostEnded, &BoostWhy::Finished, None)
    );
    assert!(ran.kernel.boosted.is_empty());
}

#[test]
fn a_thread_that_is_late_now_and_then_is_boosted_too() {
    let mut script = Script::default();
    script.tracked(7, "game", at_ms(990));
    let mut noise = Noise(3);
    let mut woke = at_ms(1000);
    for job in 0..400 {
        if job % 20 == 0 {
            script.says(7, Said::MissedDeadline, woke + ms(3), (woke, ms(3) * job));
        }
        script.burst(7, woke, ms(3));
        woke = woke + ms(4) + noise.up_to(ms(22));
    }
    let ran = play_here(script);
    assert_eq!(ran.report.boosted, 1);
}

#[test]
fn a_boost_decays_when_nothing_more_is_said_and_the_thread_is_no_longer_looked_at() {
    let mut script = crier(4000);
    script.random(7, ms(30), (at_ms(4000), at_ms(200_000)));
    let ran = play_here(script);
    let last = ran.boosts.last().unwrap();
    assert_eq!(
        (last.what, &last.why),
        (BoostWhat::BoostEnded, &BoostWhy::Decayed)
    );
    assert!(last.at < at_ms(140_000), "{last:?}");
    let boost = |asked: &&(Instant, Asked)| matches!(asked.1, Asked::Boost(..));
    let (at, _) = ran.kernel.asked.iter().rfind(boost).unwrap();
    assert_eq!(*at, last.at, "nothing is asked after the end");
}

#[test]
fn a_boosted_thread_is_looked_at_every_100_ms() {
    let mut script = crier(2000);
    script.random(7, ms(30), (at_ms(2000), at_ms(12_000)));
    let mut pauses = play_here(script).kernel.pauses_between_boosts();
    // The first two seconds have a request for each new level, too.
    let looks = pauses.split_off(pauses.len() - 50);
    let is_kept = |pause: &Span| (ms(100)..ms(200)).contains(pause);
    assert!(looks.iter().all(is_kept), "{looks:?}");
}

#[test]
fn a_notification_counts_if_the_last_one_was_within_half_a_minute() {
    let is_boosted = |again: u64| {
        let mut script = Script::default();
        script.tracked(7, "game", at_ms(990));
        script.random(7, ms(30), (at_ms(1000), at_ms(again + 100)));
        for at in [1000, again] {
            script.says(7, Said::MissedDeadline, at_ms(at), (at_ms(at), ms(1)));
        }
        play_here(script).report.boosted == 1
    };
    assert!(is_boosted(1000 + 29_000));
    assert!(!is_boosted(1000 + 31_000));
}

#[test]
fn a_flood_by_a_thread_that_never_blocks_is_worth_nothing() {
    let mut script = Script::default();
    script.tracked(7, "cheat", at_ms(990));
    let woke = at_ms(1000);
    for n in 1..100_000 {
        let at = woke + Span::from_us(100) * n;
        script.says(7, Said::MissedDeadline, at, (woke, at.since(woke)));
    }
    let ran = play_here(script);
    assert_eq!(asked_boosts(&ran), 0);
    assert_eq!((ran.boosts.len(), ran.report.boosted), (0, 0));
}

#[test]
fn who_computes_from_now_on_loses_its_boost_within_a_second_though_it_cries_on() {
    let mut script = crier(4000);
    let woke = at_ms(4001);
    for n in 1..500 {
        let at = woke + ms(10) * n;
        script.says(7, Said::MissedDeadline, at, (woke, at.since(woke)));
    }
    let ran = play_here(script);
    let last = ran.boosts.last().unwrap();
    assert_eq!((last.what, last.new_boost), (BoostWhat::BoostEnded, None));
    let ended = ran
        .boosts
        .iter()
        .find(|entry| entry.at > woke && entry.new_boost.is_none());
    assert!(ended.unwrap().at < woke + ms(1500), "{ended:?}");
}

#[test]
fn many_that_cry_share_what_one_could_have() {
    let mut script = Script::default();
    for tid in 1..=40 {
        script.tracked(tid, "cheat", at_ms(990));
        cries(&mut script, tid, (at_ms(1000), at_ms(6000)));
    }
    let ran = play_here(script);
    let until = at_ms(5500);
    let levels = |tid: u32| {
        let mut of = ran
            .boosts
            .iter()
            .filter(|entry| entry.task.id.tid == tid && entry.at < until);
        of.next_back()
            .and_then(|entry| entry.new_boost)
            .map_or(0, |boost| u32::from(boost.levels))
    };
    let all: u32 = (1..=40).map(levels).sum();
    // Five for each CPU; rounded, up to twice as much.
    assert!(all <= 20, "{all}");
}

#[test]
fn a_reservation_takes_the_place_of_a_boost() {
    let mut script = crier(3000);
    script.periodic(7, ms(40), (at_ms(3010), at_ms(9000)), |_| ms(5));
    let ran = play_here(script);
    assert!(ran.journal.iter().any(|entry| entry.what == What::Reserved));
    let last = ran.boosts.last().unwrap();
    assert_eq!(
        (last.what, &last.why, last.new_boost),
        (BoostWhat::BoostEnded, &BoostWhy::Reserved, None)
    );
    assert!(ran.kernel.boosted.is_empty());
}

#[test]
fn who_is_refused_a_boost_is_not_asked_for_again() {
    let mut kernel = Kernel::with_cpus(2);
    let refusal = Refusal::NotOrdinary {
        now: "SCHED_OTHER, nice 5".to_owned(),
    };
    kernel.boost_answers.push_back(Err(refusal.clone()));
    let ran = play(crier(5000), kernel, Settings::default());
    assert_eq!((ran.boosts.len(), asked_boosts(&ran)), (1, 1));
    assert_eq!(ran.boosts[0].why, BoostWhy::Refused(refusal));
}

#[test]
fn a_boosted_thread_that_somebody_changes_is_left_alone_for_good() {
    let script = {
        let mut script = crier(3000);
        script.periodic(7, ms(40), (at_ms(3010), at_ms(9000)), |_| ms(5));
        script
    };
    let first = play_here(crier(3000)).boosts.len();
    assert!(first > 1);
    let mut kernel = Kernel::with_cpus(2);
    let by_hand = "SCHED_OTHER, nice 7".to_owned();
    kernel
        .boost_answers
        .push_back(Err(Refusal::TakenOver { now: by_hand }));
    let ran = play(script, kernel, Settings::default());
    assert_eq!(asked_boosts(&ran), 1);
    let whats: Vec<What> = ran.of(7).iter().map(|entry| entry.what).collect();
    assert_eq!(whats, [What::TakenOver]);
    assert_eq!(ran.reserves(7), []);
}
