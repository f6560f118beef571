//! Threads without a reservation: raised while their application waits for CPUs that others use,
//! and charged to its account; and what is done at all without such need.

use std::collections::BTreeMap;
use std::ops::Range;

use onbeat_control::{BoostWhat, Party, Settings, What, Why};
use onbeat_decide::account::Account;
use onbeat_model::{Event, Instant, Refusal, Said, Span, TaskId};

use crate::kernel::{Asked, Kernel};
use crate::pipelines::burst;
use crate::world::{HOG, Noise, Ran, Script, at_ms, ms, play, play_asking, with};

const PLAYER: u32 = 7;
const WORKER: u32 = 8;
const OTHERS: u32 = 900;

/// Acts always, as LFS++ does.
fn settings() -> Settings {
    with(|it| it.means.raises = true)
}

fn on_need() -> Settings {
    with(|it| (it.means.raises, it.means.always) = (true, false))
}

fn play_here(script: Script) -> Ran {
    play(script, Kernel::with_cpus(2), settings())
}

fn raised(ran: &Ran, tid: u32) -> Vec<(Instant, Instant)> {
    let mut times = Vec::new();
    let mut since = None;
    for entry in ran.boosts.iter().filter(|entry| entry.task.id.tid == tid) {
        match entry.what {
            BoostWhat::Boosted => since = Some(entry.at),
            BoostWhat::BoostEnded => times.extend(since.take().map(|since| (since, entry.at))),
            _ => {}
        }
    }
    assert_eq!(since, None, "what was given is given back");
    times
}

fn time_raised(ran: &Ran, tid: u32) -> Span {
    raised(ran, tid)
        .iter()
        .fold(Span::ZERO, |sum, (from, until)| sum + until.since(*from))
}

/// A thread that works now and then until `until`, without a pattern, woken by `waker`.
fn works(script: &mut Script, tid: u32, waker: u32, until: u64) {
    script.tracked(tid, "worker", at_ms(0));
    let mut noise = Noise(u64::from(tid));
    let mut woke = at_ms(0);
    while woke < at_ms(until) {
        script.event(burst(tid, woke, ms(5), waker));
        woke = woke + ms(6) + noise.up_to(ms(80));
    }
}

/// The thread waits for the process `behind` for 4 ms every 40 ms.
fn waits(script: &mut Script, tid: u32, behind: u32, times: Range<u64>) {
    for at in times.step_by(40) {
        script.event(Event::Waited {
            at: at_ms(at),
            task: TaskId::recorded(tid),
            waited: ms(4),
            behind,
        });
    }
}

fn film(until: u64) -> Script {
    let mut script = Script::default();
    script.tracked(PLAYER, "player", at_ms(0));
    script.periodic(PLAYER, ms(40), (at_ms(0), at_ms(until)), |_| ms(5));
    works(&mut script, WORKER, PLAYER, until);
    script
}

#[test]
fn without_need_nothing_is_changed() {
    let ran = play(film(20_000), Kernel::with_cpus(2), on_need());
    let is_change = |asked: &&(Instant, Asked)| {
        matches!(asked.1, Asked::Reserve(..) | Asked::Boost(_, Some(_)))
    };
    assert_eq!(ran.kernel.asked.iter().find(is_change), None);
    let mut threads = ran.report.threads.iter();
    let is_watched = threads.any(|thread| thread.task.id.tid == PLAYER);
    assert!(is_watched);
}

#[test]
fn who_waits_for_others_is_reserved_or_raised_soon_and_no_longer_than_it_waits() {
    let mut script = film(20_000);
    waits(&mut script, WORKER, OTHERS, 8000..12_000);
    let ran = play(script, Kernel::with_cpus(2), on_need());
    let reserved = ran.reserves(PLAYER)[0].0;
    // Its waits are a tenth of the time then.
    assert!(
        (at_ms(8080)..=at_ms(8100)).contains(&reserved),
        "{reserved:?}"
    );
    let released = ran.first(PLAYER, |entry| entry.what == What::Released);
    assert_eq!(released.why, Why::NoNeed);
    assert!(
        (at_ms(12_900)..at_ms(13_600)).contains(&released.at),
        "{released:?}"
    );
    let [(from, until)] = raised(&ran, WORKER)[..] else {
        panic!("once: {:?}", raised(&ran, WORKER));
    };
    assert!((at_ms(8080)..=at_ms(8100)).contains(&from), "{from:?}");
    assert!((at_ms(12_900)..at_ms(13_600)).contains(&until), "{until:?}");
}

#[test]
fn who_waits_for_its_own_application_needs_nothing() {
    let mut script = film(20_000);
    waits(&mut script, WORKER, 1, 8000..12_000);
    let ran = play(script, Kernel::with_cpus(2), on_need());
    assert!(ran.boosts.is_empty(), "{:?}", ran.boosts);
    assert!(ran.reserves(PLAYER).is_empty());
}

/// Short waits and notifications of missed deadlines, each 50 ms; raised or not.
fn says_that_it_is_late(waits: bool) -> bool {
    let mut script = film(9000);
    for at in (8000..9000).step_by(50) {
        if waits {
            script.event(Event::Waited {
                at: at_ms(at),
                task: TaskId::recorded(WORKER),
                waited: ms(1),
                behind: OTHERS,
            });
        }
        let mark = (at_ms(at), ms(5));
        script.says(WORKER, Said::MissedDeadline, at_ms(at + 2), mark);
    }
    let ran = play(script, Kernel::with_cpus(2), on_need());
    !raised(&ran, WORKER).is_empty()
}

#[test]
fn who_was_late_waits_for_less_until_that_is_need_and_not_for_nothing() {
    assert!(says_that_it_is_late(true));
    assert!(!says_that_it_is_late(false));
}

#[test]
fn what_begins_beside_one_that_waits_is_raised_from_its_start() {
    let mut script = film(12_000);
    waits(&mut script, WORKER, OTHERS, 8000..12_000);
    script.tracked_of(50, 50, "late", at_ms(9000));
    script.random(50, ms(5), (at_ms(9000), at_ms(10_000)));
    let ran = play(script, Kernel::with_cpus(2), on_need());
    let from = raised(&ran, 50)[0].0;
    assert!((at_ms(9000)..=at_ms(9020)).contains(&from), "{from:?}");
}

#[test]
fn an_application_without_a_beat_has_what_its_account_gives() {
    let mut script = Script::default();
    script.tracked(HOG.tid, "hog", at_ms(0));
    script.random(WORKER, ms(5), (at_ms(0), at_ms(60_000)));
    let ran = play_here(script);
    // It computes all the time on one CPU.
    let bound = Account::START + Span::from_secs(60).scale(Account::WITHOUT_BEAT);
    let used = time_raised(&ran, HOG.tid);
    assert!(used <= bound + ms(25), "{used} of {bound}");
    assert!(used >= Account::START, "{used}");
    let ends = ran
        .boosts
        .iter()
        .filter(|entry| entry.what == BoostWhat::BoostEnded);
    let used_up = ends.filter(|entry| entry.why == Why::UsedUp).count();
    assert!((1..10).contains(&used_up), "it does not flap: {used_up}");
}

#[test]
fn many_applications_of_one_user_do_not_add_up_by_their_names() {
    let mut script = Script::default();
    for pid in 30..34 {
        script.tracked_of(pid, pid, "load", at_ms(0));
        let mut woke = at_ms(0);
        while woke < at_ms(10_000) {
            script.event(burst(pid, woke, ms(20), pid));
            woke = woke + ms(21);
        }
        let task = onbeat_model::Task {
            id: TaskId::recorded(pid),
            pid,
            comm: "renamed".into(),
        };
        script.event(Event::Renamed {
            at: at_ms(3000),
            task,
        });
    }
    let mut of_one = settings();
    of_one.parties = Box::new(|_| Party {
        application: Some(30),
        ..Party::default()
    });
    let ran = play(script, Kernel::with_cpus(4), of_one);
    let used = (30..34).fold(Span::ZERO, |sum, pid| sum + time_raised(&ran, pid));
    // A burst is told at its end here, so each may have one more.
    let bound = Account::START * 4 + Span::from_secs(10).scale(Account::WITHOUT_BEAT);
    assert!(used <= bound.scale(1.06) + ms(4 * 20), "{used} of {bound}");
}

#[test]
fn a_beat_that_computes_all_the_time_keeps_its_grant() {
    let mut script = film(20_000);
    script.tracked(HOG.tid, "hog", at_ms(0));
    let ran = play_here(script);
    // 85% of two CPUs is granted, and one is used.
    let used = time_raised(&ran, HOG.tid);
    assert!(used >= Span::from_secs(17), "{used}");
}

#[test]
fn who_sets_a_priority_of_its_own_is_left_alone() {
    let mut script = film(5000);
    waits(&mut script, WORKER, OTHERS, 1000..5000);
    let mut kernel = Kernel::with_cpus(2);
    let now = "nice 5".to_owned();
    let refused = Refusal::NotOrdinary { now };
    let answers = [Err(refused.clone()), Err(refused.clone())];
    kernel.boost_answers.extend(answers);
    let ran = play(script, kernel, on_need());
    let boosts = ran
        .kernel
        .asked
        .iter()
        .filter(|(_, asked)| matches!(asked, Asked::Boost(_, Some(_))));
    assert!(boosts.count() <= 2, "one try a thread");
    let told: Vec<&Why> = ran.boosts.iter().map(|entry| &entry.why).collect();
    assert_eq!(told, [&Why::Refused(refused); 2], "once a thread");
}

#[test]
fn a_thread_with_a_share_of_its_own_is_reserved_for_all_the_same() {
    let mut script = Script::default();
    script.tracked(PLAYER, "player", at_ms(0));
    script.periodic(PLAYER, ms(40), (at_ms(0), at_ms(4000)), |_| ms(10));
    let mut kernel = Kernel::with_cpus(2);
    let now = "nice -8".to_owned();
    kernel
        .boost_answers
        .push_back(Err(Refusal::NotOrdinary { now }));
    let ran = play(script, kernel, settings());
    assert!(!ran.reserves(PLAYER).is_empty());
    assert!(raised(&ran, PLAYER).is_empty());
}

#[test]
fn of_many_raised_threads_each_is_looked_at_in_turn_and_not_all_at_once() {
    let threads = 1000..1250;
    let mut script = Script::default();
    for tid in threads.clone() {
        script.tracked(tid, "worker", at_ms(0));
        for at in (0..1500).step_by(20) {
            script.event(burst(tid, at_ms(at), Span::from_us(5), 0));
        }
    }
    waits(&mut script, 1000, OTHERS, 0..1500);
    let mut settings = on_need();
    settings.means.reserves = false;
    settings.means.priority = true;
    let ran = play(script, Kernel::with_cpus(2), settings);
    let mut looks = BTreeMap::<_, u32>::new();
    let mut at_once = BTreeMap::<_, u32>::new();
    for &(at, asked) in &ran.kernel.asked {
        if let Asked::Boost(task, Some(_)) = asked
            && (at_ms(1000)..at_ms(1400)).contains(&at)
        {
            *looks.entry(task.tid).or_default() += 1;
            *at_once.entry(at).or_default() += 1;
        }
    }
    assert!(looks.keys().copied().eq(threads), "{looks:?}");
    assert!(at_once.values().all(|&count| count <= 100), "{at_once:?}");
}

#[test]
fn while_others_have_real_time_threads_a_cpu_is_left_to_these() {
    const LARGE: u32 = 9;
    for cpus in [1, 2] {
        let mut script = film(20_000);
        script.tracked(LARGE, "decoder", at_ms(0));
        script.periodic(LARGE, ms(40), (at_ms(0), at_ms(20_000)), |_| ms(10));
        waits(&mut script, WORKER, OTHERS, 6000..18_000);
        let theirs = at_ms(10_000)..at_ms(14_000);
        let ran = play_asking(script, Kernel::with_cpus(cpus), on_need(), |it, now| {
            if theirs.contains(&now) {
                it.others_real_time(now, now);
            }
        });
        for (tid, is_left) in [(PLAYER, true), (LARGE, cpus == 1)] {
            let mut reserves = ran.reserves(tid).into_iter();
            let held = reserves.clone().find(|(at, _)| *at < theirs.start);
            assert!(held.is_some(), "{tid} on {cpus}");
            let release = ran.of(tid).into_iter().find(|it| it.why == Why::RealTime);
            assert_eq!(release.is_some(), is_left, "{tid} on {cpus}");
            if let Some(release) = release {
                assert!(release.at < at_ms(10_020), "{release:?}");
                let meanwhile = at_ms(10_020)..at_ms(15_000);
                assert!(!reserves.any(|(at, _)| meanwhile.contains(&at)), "{tid}");
                assert!(
                    raised(&ran, tid)
                        .iter()
                        .any(|(since, _)| meanwhile.contains(since))
                );
            }
        }
    }
}
