//! Threads without a reservation: protected while their application begins or keeps a beat, and not
//! for long without.

use std::ops::Range;

use onbeat_control::{BoostEntry, BoostWhat, BoostWhy, Party, Settings, What, Why};
use onbeat_model::{Bandwidth, Burst, Event, Instant, Refusal, Span, TaskId};

use crate::kernel::{Asked, Kernel};
use crate::pipelines::burst;
use crate::world::{HOG, Noise, Ran, Script, at_ms, ms, play};

const PLAYER: u32 = 7;
const WORKER: u32 = 8;

fn settings() -> Settings {
    Settings {
        protects: true,
        ..Settings::default()
    }
}

fn play_here(script: Script) -> Ran {
    play(script, Kernel::with_cpus(2), settings())
}

/// When the thread was boosted, from when until when.
fn protected(ran: &Ran, tid: u32) -> Vec<(Instant, Instant)> {
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

#[test]
fn a_thread_goes_first_from_its_first_instruction_on() {
    let mut script = Script::default();
    works(&mut script, WORKER, 9, 5000);
    let ran = play_here(script);
    let first = &ran.boosts[0];
    assert_eq!(
        (first.what, &first.why),
        (BoostWhat::Boosted, &BoostWhy::Starts)
    );
    assert!(first.at <= at_ms(20), "{first:?}");
    assert_eq!(
        first.new_boost.map(|boost| (boost.first, boost.levels)),
        Some((true, 20))
    );
}

#[test]
fn an_application_that_hears_no_clock_is_ordinary_again_after_3_s() {
    let mut script = Script::default();
    works(&mut script, WORKER, WORKER, 5000);
    let times = protected(&play_here(script), WORKER);
    assert_eq!(times.len(), 1, "{times:?}");
    assert!(
        (at_ms(3000)..at_ms(3300)).contains(&times[0].1),
        "{times:?}"
    );
}

#[test]
fn the_nice_values_of_an_application_that_begins_are_looked_at_every_50_ms() {
    let mut script = Script::default();
    script.tracked(WORKER, "worker", at_ms(0));
    script.random(WORKER, ms(5), (at_ms(0), at_ms(950)));
    let mut pauses = play_here(script).kernel.pauses_between_boosts();
    // The first look comes with the first review of all applications.
    pauses.remove(0);
    assert!(pauses.len() > 10, "{pauses:?}");
    let is_kept = |pause: &Span| (ms(50)..ms(100)).contains(pause);
    assert!(pauses.iter().all(is_kept), "{pauses:?}");
}

/// A thread that works to capacity until `until`, woken by an interrupt every 40 ms up to
/// `interrupts`, and by its like otherwise.
fn load(script: &mut Script, tid: u32, until: u64, interrupts: u64) {
    let (mut noise, mut woke) = (Noise(u64::from(tid)), at_ms(0));
    let mut interrupt = at_ms(0);
    while woke < at_ms(until) {
        let executed = ms(2) + noise.up_to(ms(40));
        let by_device = interrupt <= woke && woke < at_ms(interrupts);
        if by_device {
            interrupt = woke + ms(40);
        }
        script.event(burst(tid, woke, executed, if by_device { 0 } else { tid }));
        woke = woke + executed + ms(1) + noise.up_to(ms(2));
    }
}

/// When the first of two such threads is no longer protected.
fn loads(until: u64, interrupts: u64) -> Instant {
    let mut script = Script::default();
    for tid in [WORKER, WORKER + 1] {
        script.tracked(tid, "loader", at_ms(0));
        load(&mut script, tid, until, interrupts);
    }
    protected(&play_here(script), WORKER)[0].1
}

#[test]
fn a_batch_program_has_no_more_than_the_cpu_time_of_a_program_that_begins() {
    let ended = loads(3000, 0);
    assert!(ended <= at_ms(750), "{ended:?}");
    // Interrupts until 0.5 s count in the half second after, and for 2 s from then on.
    let read_from_disk = loads(4000, 500);
    assert!(read_from_disk <= at_ms(3250), "{read_from_disk:?}");
}

/// Until when the thread went before all ordinary ones.
fn first_until(ran: &Ran, tid: u32) -> Option<Instant> {
    let mut entries = ran.boosts.iter().filter(|entry| entry.task.id.tid == tid);
    let end = entries.find(|entry| entry.old_boost.is_some_and(|boost| boost.first));
    end.map(|entry| entry.at)
}

#[test]
fn who_computes_goes_first_for_its_account_and_milliseconds_more() {
    let mut script = Script::default();
    script.tracked(HOG.tid, "hog", at_ms(0));
    script.event(burst(WORKER, at_ms(2000), ms(1), HOG.tid));
    let until = first_until(&play_here(script), HOG.tid);
    // Its account begins with the first turn, after 20 ms, and is looked at each 5 ms.
    let end = at_ms(800)..=at_ms(825);
    assert!(until.is_some_and(|at| end.contains(&at)), "{until:?}");
}

/// All threads are of one application.
fn of_one() -> Settings {
    Settings {
        parties: Box::new(|_| Party {
            application: Some(WORKER),
            ..Party::default()
        }),
        ..settings()
    }
}

/// Until when the first of two threads of one application that work to capacity goes first.
fn first_of_two_until(process_of: fn(u32) -> u32) -> Instant {
    let mut script = Script::default();
    for tid in [WORKER, WORKER + 1] {
        script.tracked_of(process_of(tid), tid, "loader", at_ms(0));
        load(&mut script, tid, 2000, 0);
    }
    let ran = play(script, Kernel::with_cpus(2), of_one());
    first_until(&ran, WORKER).unwrap_or_default()
}

#[test]
fn each_process_of_an_application_that_begins_has_an_account() {
    let of_one_process = first_of_two_until(|_| WORKER);
    assert!(of_one_process <= at_ms(500), "{of_one_process:?}");
    let of_two = first_of_two_until(|tid| tid);
    assert!((at_ms(800)..=at_ms(1000)).contains(&of_two), "{of_two:?}");
}

#[test]
fn a_process_that_has_ended_leaves_no_account() {
    let mut script = Script::default();
    for (tid, until) in [(WORKER, 2000), (WORKER + 1, 200)] {
        script.tracked_of(tid, tid, "loader", at_ms(0));
        load(&mut script, tid, until, 0);
    }
    let (at, task) = (at_ms(250), TaskId::recorded(WORKER + 1));
    script.event(Event::Exited { at, task });
    let until = first_until(&play(script, Kernel::with_cpus(2), of_one()), WORKER);
    // It has used 0.2 s.
    let end = at_ms(550)..=at_ms(700);
    assert!(until.is_some_and(|at| end.contains(&at)), "{until:?}");
}

#[test]
fn nobody_goes_first_for_longer_than_3_s() {
    let mut script = Script::default();
    works(&mut script, WORKER, 9, 5000);
    let until = first_until(&play_here(script), WORKER);
    let end = at_ms(3000)..=at_ms(3005);
    assert!(until.is_some_and(|at| end.contains(&at)), "{until:?}");
}

/// A thread that computes with a pause of 1 to 3 ms now and then, woken by a device in each span of
/// `every` until `until`: when it is no longer protected.
fn hears_interrupts(every: Span, until: Instant) -> Instant {
    let mut script = Script::default();
    script.tracked(WORKER, "compiler", at_ms(0));
    let (mut noise, mut woke, mut interrupt) = (Noise(4), at_ms(0), at_ms(0));
    while woke < at_ms(4000) {
        let by_device = interrupt <= woke && woke < until;
        if by_device {
            interrupt = woke + every;
        }
        let executed = ms(10) + noise.up_to(ms(80));
        let waker = if by_device { 0 } else { WORKER };
        script.event(burst(WORKER, woke, executed, waker));
        woke = woke + executed + ms(1) + noise.up_to(ms(2));
    }
    protected(&play_here(script), WORKER)[0].1
}

#[test]
fn a_batch_program_that_hears_interrupts_is_protected_no_longer_unless_they_come_steadily() {
    let ended = hears_interrupts(ms(400), at_ms(4000));
    assert!((at_ms(800)..at_ms(1100)).contains(&ended), "{ended:?}");
    let ended = hears_interrupts(ms(80), at_ms(1000));
    assert!((at_ms(1600)..at_ms(3500)).contains(&ended), "{ended:?}");
}

#[test]
fn an_application_that_went_first_is_not_tried_soon_after_it() {
    let mut script = Script::default();
    let mut noise = Noise(5);
    // One process after the other, as a compiler starts them, of which only the first begins.
    for (tid, begins, ends) in [(WORKER, 0, 1000), (WORKER + 1, 1000, 40_000)] {
        script.tracked(tid, "compiler", at_ms(begins));
        let mut woke = at_ms(begins);
        while woke < at_ms(ends) {
            let executed = ms(10) + noise.up_to(ms(30));
            let waited = if begins == 0 { ms(0) } else { executed * 3 };
            let mut burst = burst(tid, woke, executed, tid);
            if let Event::Burst(burst) = &mut burst {
                burst.first_ran = burst.first_ran + waited;
                burst.blocked = burst.blocked + waited;
                woke = burst.blocked + ms(1);
            }
            script.event(burst);
        }
    }
    let ran = play_here(script);
    let is_probation = |entry: &&BoostEntry| entry.why == BoostWhy::OnProbation;
    let probations = ran.boosts.iter().filter(is_probation).map(|entry| entry.at);
    let probations: Vec<Instant> = probations.collect();
    assert!(probations[0] >= at_ms(12_800), "{probations:?}");
    assert!(
        probations[1].since(probations[0]) >= ms(20_000),
        "{probations:?}"
    );
}

#[test]
fn a_player_that_is_late_is_protected_until_it_has_caught_up() {
    let mut script = Script::default();
    script.tracked(PLAYER, "player", at_ms(0));
    let (mut noise, mut woke) = (Noise(7), at_ms(0));
    // A timer wakes it for frames that it cannot show in time, so that no period is in them; then
    // it does not sleep until its next frame, but waits for its display server for a moment.
    while woke < at_ms(2300) {
        let sleeps = woke < at_ms(900);
        let executed = ms(5) + noise.up_to(ms(30));
        script.event(burst(PLAYER, woke, executed, if sleeps { 0 } else { 9 }));
        let pause = if sleeps { ms(30) } else { ms(2) };
        woke = woke + executed + noise.up_to(pause);
    }
    let until = protected(&play_here(script), PLAYER)[0].1;
    assert!(until >= at_ms(2300), "{until:?}");
}

#[test]
fn a_player_that_computes_while_it_begins_has_time_to_catch_up_after_it() {
    let mut script = Script::default();
    script.tracked(PLAYER, "player", at_ms(0));
    let (mut noise, mut woke) = (Noise(7), at_ms(0));
    while woke < at_ms(2300) {
        let sleeps = woke >= at_ms(1100);
        let executed = ms(5) + noise.up_to(ms(30));
        script.event(burst(PLAYER, woke, executed, 0));
        let pause = if sleeps { ms(30) } else { Span::from_us(300) };
        woke = woke + executed + noise.up_to(pause);
    }
    let ran = play_here(script);
    let began = first_until(&ran, PLAYER);
    assert!(began.is_some_and(|at| at < at_ms(1000)), "{began:?}");
    let until = protected(&ran, PLAYER)[0].1;
    assert!(until >= at_ms(2300), "{until:?}");
}

#[test]
fn a_player_that_is_late_as_it_begins_is_protected_for_5_s_while_its_display_server_wakes_it() {
    let until = |waker: u32| {
        let mut script = Script::default();
        script.tracked(PLAYER, "player", at_ms(0));
        let (mut noise, mut woke) = (Noise(7), at_ms(0));
        while woke < at_ms(8000) {
            let executed = ms(5) + noise.up_to(ms(30));
            script.event(burst(PLAYER, woke, executed, waker));
            woke = woke + executed + noise.up_to(ms(2));
        }
        protected(&play_here(script), PLAYER)[0].1
    };
    let by_itself = until(PLAYER);
    assert!(by_itself <= at_ms(1000), "{by_itself:?}");
    let by_its_display = until(9);
    let catches_up = at_ms(5000)..=at_ms(5750);
    assert!(catches_up.contains(&by_its_display), "{by_its_display:?}");
}

#[test]
fn a_build_is_not_protected_for_longer_because_its_commands_wake_it_as_they_end() {
    let mut script = Script::default();
    script.tracked(WORKER, "make", at_ms(0));
    let (mut noise, mut woke) = (Noise(7), at_ms(0));
    for command in 100.. {
        let blocks = woke + ms(30) + noise.up_to(ms(30));
        script.tracked_of(command, command, "command", woke);
        let (at, task) = (blocks, TaskId::recorded(command));
        script.event(Event::Exited { at, task });
        script.event(burst(WORKER, woke, blocks.since(woke), command - 1));
        woke = blocks + ms(1);
        if woke > at_ms(3000) {
            break;
        }
    }
    let until = protected(&play(script, Kernel::with_cpus(2), of_one()), WORKER)[0].1;
    assert!(until <= at_ms(1250), "{until:?}");
}

#[test]
fn one_that_hears_a_clock_and_works_to_capacity_without_a_rhythm_is_a_batch_program_too() {
    let ended = loads(40_000, 40_000);
    // It is told after 20 s, at a look; it was protected for 2 s from the look before, to the next
    // one.
    assert!(
        (at_ms(21_750)..=at_ms(22_250)).contains(&ended),
        "{ended:?}"
    );
}

#[test]
fn who_works_for_a_thread_with_a_rhythm_is_protected_as_long_as_that_has_one() {
    let mut script = Script::default();
    script.tracked(PLAYER, "player", at_ms(0));
    script.periodic(PLAYER, ms(40), (at_ms(0), at_ms(8000)), |_| ms(10));
    works(&mut script, WORKER, PLAYER, 12_000);
    let ran = play_here(script);
    assert!(!ran.reserves(PLAYER).is_empty());
    let [player, worker] = [PLAYER, WORKER].map(|tid| protected(&ran, tid));
    let reserved = ran.reserves(PLAYER)[0].0;
    assert_eq!(player[0].1, reserved, "a reservation takes its place");
    assert!(
        worker
            .iter()
            .any(|&(from, to)| from <= at_ms(20) && to >= at_ms(8000)),
        "{worker:?}"
    );
    // An application keeps its beat for 2 s after its last rhythm, and is reviewed four times a
    // second.
    let released = Asked::Release(TaskId::recorded(PLAYER));
    let mut asked = ran.kernel.asked.iter().rev();
    let (lost, _) = asked.find(|(_, asked)| *asked == released).unwrap();
    let ends = *lost + ms(2250);
    assert!(
        worker.iter().all(|&(_, to)| to <= ends),
        "{worker:?} {lost:?}"
    );
}

#[test]
fn who_only_computes_is_protected_ever_more_rarely() {
    let mut script = Script::default();
    script.tracked(PLAYER, "player", at_ms(0));
    script.periodic(PLAYER, ms(40), (at_ms(0), at_ms(60_000)), |_| ms(10));
    script.tracked(HOG.tid, "hog", at_ms(0));
    let times = protected(&play_here(script), HOG.tid);
    assert!((2..=6).contains(&times.len()), "{times:?}");
    for &(from, to) in &times {
        assert!(to.since(from) <= ms(1250), "{times:?}");
    }
    let pauses = times.windows(2).map(|pair| pair[1].0.since(pair[0].1));
    let pauses: Vec<Span> = pauses.collect();
    assert!(pauses[0] >= ms(4750) && pauses.is_sorted(), "{pauses:?}");
}

#[test]
fn who_computes_and_pauses_for_a_moment_now_and_then_only_computes() {
    let paused = |pause: Span| {
        let mut script = Script::default();
        script.tracked(PLAYER, "player", at_ms(0));
        script.periodic(PLAYER, ms(40), (at_ms(0), at_ms(8000)), |_| ms(10));
        script.tracked(WORKER, "worker", at_ms(0));
        let (mut noise, mut woke) = (Noise(3), at_ms(0));
        while woke < at_ms(8000) {
            let executed = ms(20) + noise.up_to(ms(80));
            script.event(burst(WORKER, woke, executed, PLAYER));
            woke = woke + executed + pause;
        }
        protected(&play_here(script), WORKER)[0].1
    };
    // It goes first until it has used its account, and may compute for 0.4 s after that.
    let moments = paused(Span::from_us(1));
    assert!(moments <= at_ms(1250), "{moments:?}");
    let sleeps = paused(ms(10));
    assert!(sleeps >= at_ms(8000), "{sleeps:?}");
}

#[test]
fn a_thread_that_cannot_be_reserved_for_stays_protected() {
    let mut script = Script::default();
    script.tracked(PLAYER, "pinned", at_ms(0));
    script.periodic(PLAYER, ms(40), (at_ms(0), at_ms(8000)), |_| ms(10));
    let mut kernel = Kernel::with_cpus(2);
    let narrow = || Refusal::NarrowAffinity {
        advice: String::new(),
    };
    let refusals = std::iter::repeat_with(narrow).take(20).collect();
    kernel.answers.insert(PLAYER, refusals);
    let ran = play(script, kernel, settings());
    let reserves = ran.reserves(PLAYER).len();
    assert!(reserves >= 2);
    // Each refusal came after the boost had been dropped, and has it put in force again.
    let boosted = |entry: &&BoostEntry| entry.what == BoostWhat::Boosted;
    assert_eq!(ran.boosts.iter().filter(boosted).count(), reserves + 1);
    let last = ran.boosts.last().unwrap();
    assert_eq!(
        (last.what, &last.why),
        (BoostWhat::BoostEnded, &BoostWhy::Finished)
    );
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
    assert!(ran.boosts.is_empty());
}

#[test]
fn a_thread_that_was_given_a_smaller_share_is_not_tried_though_it_starves() {
    let mut script = Script::default();
    script.tracked(PLAYER, "player", at_ms(0));
    script.starved(PLAYER, (at_ms(0), at_ms(8000)));
    let mut kernel = Kernel::with_cpus(2);
    let now = "nice 5".to_owned();
    kernel.boost_answers = [Ok(()), Err(Refusal::TakenOver { now })].into();
    let ran = play(script, kernel, settings());
    assert!(ran.journal.is_empty(), "{:?}", ran.journal);
}

#[test]
fn nobody_is_protected_unless_the_settings_say_so() {
    let mut script = Script::default();
    works(&mut script, WORKER, 0, 3000);
    let ran = play(script, Kernel::with_cpus(2), Settings::default());
    let is_boost = |asked: &Asked| matches!(asked, Asked::Boost(TaskId { .. }, Some(_)));
    assert!(!ran.kernel.asked.iter().any(|(_, asked)| is_boost(asked)));
}

#[test]
fn where_a_nice_value_does_not_help_starving_threads_are_tried() {
    let mut script = Script::default();
    script.tracked(PLAYER, "player", at_ms(0));
    script.starved(PLAYER, (at_ms(0), at_ms(5000)));
    let ran = play_here(script);
    let first = ran.of(PLAYER)[0];
    assert!(matches!(first.why, Why::Starves { .. }), "{first:?}");
    assert!(
        first.at >= at_ms(3000),
        "a program that begins waits for itself"
    );
    assert_eq!(ran.report.protected, 1);
}

#[test]
fn where_it_helps_nobody_is_tried_besides_before_the_application_is_old() {
    let mut script = Script::default();
    // A thread that is ready and does not run for a third of the time, but works to capacity
    // together with its like.
    for tid in [WORKER, WORKER + 1, WORKER + 2] {
        script.tracked(tid, "encoder", at_ms(0));
        let (mut noise, mut woke) = (Noise(u64::from(tid)), at_ms(0));
        while woke < at_ms(15_000) {
            let executed = ms(2) + noise.up_to(ms(8));
            let waited = executed.scale(0.7);
            script.late_burst(tid, woke, waited, executed);
            woke = woke + waited + executed + noise.up_to(ms(1));
        }
    }
    let ran = play_here(script);
    assert!(ran.journal.is_empty(), "{:?}", ran.journal);
}

/// A job every 40 ms from 0 until `until`: `usual` ms, and from `from` on each fourth 32 ms, for
/// which a budget is not enough, so that it ends 10 ms late.
fn runs_out(until: u64, from: u64, usual: u64) -> Script {
    runs_out_but(until, from, usual, 0..0)
}

/// The same, but `without` a budget during these ms.
fn runs_out_but(until: u64, from: u64, usual: u64, without: Range<u64>) -> Script {
    let mut script = Script::default();
    script.tracked(WORKER, "worker", at_ms(0));
    let mut blocked = at_ms(0);
    for (n, at) in (0..until).step_by(40).enumerate() {
        let is_long = at >= from && n % 4 == 0;
        let executed = if is_long { 32 } else { usual };
        let is_stopped = is_long && !without.contains(&at);
        let took = if is_stopped { 50 } else { executed };
        let woke = at_ms(at).max(blocked + ms(1));
        blocked = woke + ms(took);
        script.event(Event::Burst(Burst {
            woke,
            blocked,
            exhausted: is_stopped,
            ..Burst::alone(
                TaskId::recorded(WORKER),
                woke + Span::from_us(10),
                ms(executed),
            )
        }));
    }
    script
}

#[test]
fn a_thread_that_its_own_budget_makes_late_goes_without_for_a_while_and_longer_each_time() {
    let ran = play_here(runs_out_but(60_000, 2000, 8, 2900..22_700));
    let stood_down: Vec<_> = ran
        .of(WORKER)
        .into_iter()
        .filter_map(|entry| match entry.why {
            Why::HeldBack { pause, .. } => Some((entry.what, entry.at, pause)),
            _ => None,
        })
        .collect();
    let pauses: Vec<_> = stood_down.iter().map(|&(_, _, pause)| pause).collect();
    assert_eq!(pauses, [ms(20_000), ms(40_000)], "{stood_down:?}");
    assert!(stood_down.iter().all(|&(what, ..)| what == What::Released));
    let (_, first, pause) = stood_down[0];
    assert!(first <= at_ms(4000), "{first:?}");
    // It is served as its application's other threads meanwhile.
    let times = protected(&ran, WORKER);
    let during = times
        .iter()
        .any(|&(since, until)| since <= first + ms(300) && until >= first + pause);
    assert!(during, "{times:?}");
    let again = ran.reserves(WORKER).into_iter().find(|(at, _)| *at > first);
    assert!(
        again.is_some_and(|(at, _)| at >= first + pause),
        "{again:?}"
    );
}

fn is_held_back(ran: &Ran) -> bool {
    let is_it = |why: &Why| matches!(why, Why::HeldBack { .. });
    ran.of(WORKER).iter().any(|entry| is_it(&entry.why))
}

#[test]
fn a_thread_whose_jobs_are_much_alike_keeps_its_reservation_however_late_it_is() {
    // Its budget may be raised as far as it goes.
    let mut settings = settings();
    settings.allocation.per_task = Bandwidth::ONE;
    let script = runs_out(10_000, 2000, 14);
    assert!(!is_held_back(&play(script, Kernel::with_cpus(2), settings)));
}

#[test]
fn where_nothing_else_is_done_for_a_thread_it_keeps_the_reservation_that_makes_it_late() {
    let settings = Settings::default();
    let ran = play(runs_out(10_000, 2000, 8), Kernel::with_cpus(2), settings);
    assert!(!is_held_back(&ran));
}

#[test]
fn a_thread_goes_without_a_reservation_that_may_not_be_as_large_as_it_needs() {
    // By a quota of its owner's, and by a cap of each thread.
    let late_with = |quota: f64, per_task: f64| {
        let mut kernel = Kernel::with_cpus(2);
        kernel.quotas.insert(WORKER, Bandwidth::from_cpus(quota));
        let mut settings = settings();
        settings.allocation.per_task = Bandwidth::from_cpus(per_task);
        play(runs_out(10_000, 2000, 14), kernel, settings)
    };
    for (quota, per_task) in [(0.2, 1.0), (2.0, 0.2)] {
        let ran = late_with(quota, per_task);
        let entries = ran.of(WORKER).into_iter();
        let mut without = entries.filter(|entry| matches!(entry.why, Why::HeldBack { .. }));
        let first = without.next().unwrap();
        assert_eq!(first.what, What::Released);
        assert!(first.at <= at_ms(3000), "{first:?}");
    }
    assert!(!is_held_back(&late_with(2.0, 1.0)));
}
