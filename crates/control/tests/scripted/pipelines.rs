use onbeat_control::{Party, PipelineSettings, Settings, What, Why};
use onbeat_model::{Burst, Event, Instant, Name, Span, Task, TaskId};

use crate::kernel::{Asked, Kernel};
use crate::world::{Noise, Ran, Script, at_ms, ms, play, with};

pub(crate) const PLAYER: u32 = 1;
pub(crate) const SERVER: u32 = 20;
const LOGGER: u32 = 30;
const COMPOSITOR: u32 = 40;

pub(crate) fn settings() -> Settings {
    let outsiders = vec![99];
    with(|it| it.pipelines = Some(PipelineSettings { outsiders }))
}

pub(crate) fn burst(tid: u32, woke: Instant, executed: Span, waker: u32) -> Event {
    Event::Burst(Burst {
        woke,
        waker,
        ..Burst::alone(TaskId::recorded(tid), woke + Span::from_us(10), executed)
    })
}

pub(crate) fn task(tid: u32, pid: u32, name: &str) -> Task {
    Task {
        id: TaskId::recorded(tid),
        pid,
        comm: Name::from(name),
    }
}

/// `waker` wakes `wakee`, which is not requested, `count` times in each quarter of a second.
pub(crate) fn wakes(
    script: &mut Script,
    waker: u32,
    wakee: Task,
    count: u64,
    (from, until): (u64, u64),
) {
    script.stranger(wakee);
    for at in (from..until).step_by(250) {
        script.event(Event::Woke {
            at: at_ms(at),
            task: TaskId::recorded(waker),
            wakee,
            count,
        });
    }
}

/// A player that works for 8 ms in each `period`, from `from` to `until`, and wakes the server
/// twice in each.
pub(crate) fn plays(script: &mut Script, player: u32, period: Span, (from, until): (u64, u64)) {
    script.tracked(player, "player", at_ms(from));
    script.periodic(player, period, (at_ms(from), at_ms(until)), |_| ms(8));
    wakes(
        script,
        player,
        task(SERVER, SERVER, "Xvfb"),
        12,
        (from + 100, until),
    );
}

/// The server works for two spells of 2 ms for each of the player's jobs, and wakes it for what is
/// left to do; what it did before it was tracked, the world does not tell.
pub(crate) fn serves(script: &mut Script, player: u32, period: Span, (from, until): (u64, u64)) {
    let mut release = at_ms(from);
    while release < at_ms(until) {
        script.event(burst(SERVER, release + ms(5), ms(2), player));
        script.event(burst(SERVER, release + ms(9), ms(2), player));
        answered(script, player, release + ms(12), SERVER);
        release = release + period;
    }
}

/// A player at 25 Hz until that time, whose server serves it until the other.
fn served(until: u64, serves_until: u64) -> Script {
    let mut script = Script::default();
    plays(&mut script, PLAYER, ms(40), (0, until));
    serves(&mut script, PLAYER, ms(40), (0, serves_until));
    script
}

pub(crate) fn answered(script: &mut Script, player: u32, at: Instant, server: u32) {
    script.event(burst(player, at, Span::from_us(50), server));
}

pub(crate) fn number_of(ran: &Ran, tid: u32, what: What) -> usize {
    let entries = ran.of(tid);
    entries.iter().filter(|entry| entry.what == what).count()
}

fn last(ran: &Ran, tid: u32) -> Option<What> {
    ran.of(tid).last().map(|entry| entry.what)
}

fn number_of_asked(ran: &Ran, tid: u32) -> usize {
    let is_about = |asked: &&(Instant, Asked)| matches!(&asked.1, Asked::Reserve(task, _) | Asked::Release(task) if task.tid == tid);
    ran.kernel.asked.iter().filter(is_about).count()
}

#[test]
fn a_server_that_the_player_wakes_in_each_job_is_watched_and_gets_its_period_and_a_budget() {
    let script = served(4000, 4000);
    let ran = play(script, Kernel::with_cpus(2), settings());
    assert!(ran.watched.contains(&SERVER), "{:?}", ran.watched);
    let reserved = ran.reserves(SERVER);
    let (_, server) = reserved.last().expect("the server is served");
    let (_, player) = *ran.reserves(PLAYER).last().expect("the player is kept");
    assert!(server.period().abs_diff(player.period()) < Span::from_us(500));
    // Both spells of 2 ms, and what is reserved beyond that; not the player's 8 ms.
    assert!(server.runtime() >= ms(4), "{server:?}");
    assert!(server.runtime() < ms(6), "{server:?}");
    let why = ran.of(SERVER)[0].why.to_string();
    assert!(
        why.starts_with("it is stage 2 of player's 25 Hz pipeline: seen in"),
        "{why}"
    );
    let report = ran.report.threads.iter().find(|t| t.task.id.tid == SERVER);
    let stage = report
        .and_then(|report| report.stage)
        .expect("it is reported");
    assert_eq!((stage.head_tid, stage.number), (PLAYER, 2));
}

#[test]
fn a_thread_that_the_player_wakes_at_no_rhythm_is_let_go_and_never_served() {
    let mut script = Script::default();
    plays(&mut script, PLAYER, ms(40), (0, 20_000));
    wakes(
        &mut script,
        PLAYER,
        task(LOGGER, LOGGER, "logger"),
        3,
        (100, 20_000),
    );
    let mut noise = Noise(5);
    let mut at = 0;
    while at < 20_000 {
        script.event(burst(LOGGER, at_ms(at), ms(1), PLAYER));
        answered(&mut script, PLAYER, at_ms(at + 2), LOGGER);
        at += 30 + noise.up_to(ms(200)).as_ns() / 1_000_000;
    }
    let ran = play(script, Kernel::with_cpus(2), settings());
    assert!(ran.watched.contains(&LOGGER));
    assert!(ran.unwatched.contains(&LOGGER));
    assert_eq!(number_of_asked(&ran, LOGGER), 0);
}

#[test]
fn neither_the_first_process_nor_onbeat_itself_is_watched() {
    let mut script = Script::default();
    plays(&mut script, PLAYER, ms(40), (0, 4000));
    wakes(&mut script, PLAYER, task(50, 1, "init"), 12, (100, 4000));
    wakes(&mut script, PLAYER, task(51, 99, "onbeat"), 12, (100, 4000));
    let ran = play(script, Kernel::with_cpus(2), settings());
    assert_eq!(ran.watched, [SERVER]);
}

#[test]
fn what_is_told_of_a_thread_that_was_let_go_brings_it_back_for_nobody() {
    // One of onbeat's own, known by its number alone until it is tracked; then it is let go, while
    // its bursts are on their way.
    const LISTENER: u32 = 51;
    let mut script = Script::default();
    plays(&mut script, PLAYER, ms(40), (0, 4000));
    script.stranger(task(LISTENER, 99, "onbeat-ear"));
    for at in (100..4000).step_by(5) {
        answered(&mut script, PLAYER, at_ms(at), LISTENER);
        script.event(burst(LISTENER, at_ms(at + 2), ms(1), PLAYER));
    }
    let mut settings = settings();
    settings.means.raises = true;
    let ran = play(script, Kernel::with_cpus(2), settings);
    assert!(ran.unwatched.contains(&LISTENER), "{:?}", ran.watched);
    let is_its = |tid: u32| tid == LISTENER;
    assert!(!ran.boosts.iter().any(|boost| is_its(boost.task.id.tid)));
    assert!(!ran.journal.iter().any(|entry| is_its(entry.task.id.tid)));
}

#[test]
fn when_the_player_ends_its_server_gets_back_what_it_had() {
    let mut script = served(4000, 4000);
    script.exits(PLAYER, at_ms(4000));
    // The server goes on without it; the world must go on, too, for the loop to turn.
    for at in (4000..8000).step_by(500) {
        script.event(burst(SERVER, at_ms(at), ms(1), 0));
    }
    let ran = play(script, Kernel::with_cpus(2), settings());
    assert!(!ran.reserves(SERVER).is_empty());
    assert_eq!(last(&ran, SERVER), Some(What::Released));
    let released = ran.of(SERVER).last().unwrap().at;
    assert!(released < at_ms(5000), "{released:?}");
    assert!(ran.unwatched.contains(&SERVER));
}

#[test]
fn a_server_is_a_member_of_the_application_that_it_works_for_also_after_its_end() {
    const LAUNCHER: u32 = 77;
    let mut script = served(4000, 4000);
    script.exits(PLAYER, at_ms(4000));
    script.event(burst(SERVER, at_ms(4010), ms(1), 0));
    let mut settings = settings();
    settings.parties = Box::new(|task| Party {
        application: (task.tid == PLAYER).then_some(LAUNCHER),
        ..Party::default()
    });
    let ran = play(script, Kernel::with_cpus(2), settings);
    let [application] = &ran.report.applications[..] else {
        panic!("{:?}", ran.report.applications);
    };
    assert_eq!((application.pid, application.members), (LAUNCHER, 2));
    assert_eq!(application.by_reservation, 2);
    let threads = &ran.report.threads;
    assert_eq!(threads.len(), 2);
    assert!(threads.iter().all(|t| t.served.application == LAUNCHER));
    let jobs: u64 = threads.iter().map(|thread| thread.counted.jobs).sum();
    assert_eq!(application.jobs, jobs);
    assert_eq!(ran.report.left_alone, 0);
}

#[test]
fn a_server_that_works_for_others_now_is_let_go_after_five_seconds_of_doubt() {
    let mut script = served(30_000, 8000);
    script.random(SERVER, ms(30), (at_ms(8000), at_ms(30_000)));
    let ran = play(script, Kernel::with_cpus(2), settings());
    let off = ran.first(SERVER, |entry| entry.why == Why::OffPath);
    let after = off.at.since(at_ms(8000));
    assert!(after >= ms(5000) && after < ms(9000), "{after}");
}

#[test]
fn a_server_of_two_players_gets_the_shorter_period_and_a_budget_for_both() {
    let mut script = served(6000, 6000);
    plays(&mut script, 2, ms(20), (0, 6000));
    let mut release = at_ms(13);
    while release < at_ms(6000) {
        script.event(burst(SERVER, release, ms(1), 2));
        answered(&mut script, 2, release + ms(2), SERVER);
        release = release + ms(20);
    }
    let ran = play(script, Kernel::with_cpus(2), settings());
    let (_, server) = *ran.reserves(SERVER).last().expect("the server is served");
    assert!(
        server.period().abs_diff(ms(20)) < Span::from_us(500),
        "{server:?}"
    );
    // In each second period of 20 ms: 4 ms for the one and 1 ms for the other.
    assert!(server.runtime() >= ms(5), "{server:?}");
    let report = ran.report.threads.iter().find(|t| t.task.id.tid == SERVER);
    let stage = report
        .and_then(|report| report.stage)
        .expect("it is reported");
    assert_eq!((stage.head_tid, stage.paths), (2, 2));
}

#[test]
fn the_path_goes_on_behind_the_server() {
    let mut script = served(6000, 6000);
    wakes(
        &mut script,
        SERVER,
        task(COMPOSITOR, COMPOSITOR, "compositor"),
        6,
        (0, 6000),
    );
    for at in (0..6000).step_by(40) {
        script.event(burst(COMPOSITOR, at_ms(at + 14), ms(3), SERVER));
        script.event(burst(SERVER, at_ms(at + 18), Span::from_us(50), COMPOSITOR));
    }
    let ran = play(script, Kernel::with_cpus(2), settings());
    assert_eq!(ran.watched, [SERVER, COMPOSITOR]);
    let why = ran.of(COMPOSITOR)[0].why.to_string();
    assert!(
        why.starts_with("it is stage 3 of player's 25 Hz pipeline"),
        "{why}"
    );
}

#[test]
fn who_wakes_the_player_is_found_as_well_as_whom_it_wakes() {
    let mut script = Script::default();
    script.tracked(PLAYER, "player", at_ms(0));
    script.stranger(task(SERVER, SERVER, "sound"));
    // A sound server wakes the player for each buffer; only the player's own bursts tell of it.
    for job in 0..200 {
        let woke = at_ms(job * 20);
        script.event(burst(PLAYER, woke, ms(2), SERVER));
        script.event(burst(SERVER, woke + ms(19), ms(1), 0));
    }
    let ran = play(script, Kernel::with_cpus(2), settings());
    assert_eq!(ran.watched, [SERVER]);
    let (_, server) = *ran.reserves(SERVER).last().expect("the server is served");
    assert!(
        server.period().abs_diff(ms(20)) < Span::from_us(500),
        "{server:?}"
    );
}

#[test]
fn another_player_at_the_same_rate_that_the_same_server_draws_for_is_no_stage() {
    const OTHER: u32 = 50;
    let mut script = served(8000, 8000);
    wakes(
        &mut script,
        SERVER,
        task(OTHER, OTHER, "other"),
        6,
        (0, 8000),
    );
    for at in (0..8000).step_by(40) {
        script.event(burst(OTHER, at_ms(at + 20), ms(3), 0));
        script.event(burst(SERVER, at_ms(at + 23), ms(1), OTHER));
        answered(&mut script, OTHER, at_ms(at + 25), SERVER);
    }
    let ran = play(script, Kernel::with_cpus(2), settings());
    assert!(!ran.reserves(SERVER).is_empty());
    assert!(ran.watched.contains(&OTHER));
    assert_eq!(number_of_asked(&ran, OTHER), 0);
}
