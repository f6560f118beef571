use serde_json::json;

use super::*;

/// The report of a thread with 50 jobs of 40 ms, the tenth of which is late, and a reservation from
/// the fifth job on, until another program changed it.
pub(crate) fn report(comm: &str) -> serde_json::Value {
    let ms = 1_000_000;
    let times = |after: u64| {
        (1..=50)
            .map(|job| (job * 40 + after) * ms)
            .collect::<Vec<u64>>()
    };
    let mut ended = times(9);
    ended[9] += 40 * ms;
    let entry = |at: u64, what: &str, new: serde_json::Value| {
        json!({
            "at_ns": at * ms, "tid": 7, "started_ticks": 3, "what": what, "why": format!("so it was <{what}>"),
            "old": null, "new": new,
        })
    };
    let new = json!({"runtime_ns": 10 * ms, "deadline_ns": 40 * ms, "period_ns": 40 * ms});
    json!({
        "threads": [{
            "tid": 7, "started_ticks": 3, "pid": 6, "comm": comm, "state": "taken-over", "period_ns": 40 * ms,
            "application": 6, "confidence": 0.75, "jobs": 50, "missed": 1, "executed_ns": 400 * ms, "response_time": {"p50_ns": 9 * ms, "p95_ns": 9 * ms, "p99_ns": 49 * ms, "max_ns": 49 * ms},
        }],
        "applications": [{
            "pid": 6, "comm": "film", "members": 2, "living": 0, "by_reservation": 1, "by_nice": 0, "refused": 0,
            "jobs": 50, "missed": 1, "executed_ns": 400 * ms, "bandwidth_used": 0.2, "bandwidth_reserved": 0.25,
        }],
        "elapsed_ns": 2000 * ms, "lost_events": 0,
        "history": [{
            "tid": 7, "started_ticks": 3, "wakeups_ns": times(0),
            "recent_jobs": {
                "release_ns": times(0), "deadline_ns": times(40), "ended_ns": ended,
                "executed_ns": vec![8 * ms; 50],
            },
        }],
        "decisions": [
            entry(200, "reserved", new.clone()),
            entry(300, "refused", new),
            entry(1500, "taken-over", json!(null)),
        ],
    })
}

fn replay() -> TopReplay {
    TopReplay::new(&serde_json::from_value(report("player")).unwrap())
}

fn seen(replay: &mut TopReplay, ms: u64) -> ThreadReport {
    let snapshot = replay.after(Span::from_ms(ms));
    let seen = snapshot.threads.into_iter().next().unwrap();
    let held = seen.present.reservation;
    let held = held.map_or(Bandwidth::ZERO, |held| held.bandwidth());
    assert_eq!(snapshot.reserved, held);
    seen
}

#[test]
fn at_each_moment_it_is_told_what_had_happened_by_then() {
    let mut replay = replay();
    assert_eq!(replay.length(), Span::from_ms(49 * 40 + 9));
    let first = seen(&mut replay, 0);
    assert_eq!(
        (first.counted.jobs, first.state, first.period),
        (0, State::Watched, None)
    );
    // The clock of the run began with the first wakeup, at 40 ms.
    let early = replay.after(Span::from_ms(100));
    let (thread, jobs) = (&early.threads[0], &early.jobs[0].1);
    assert_eq!((thread.counted.jobs, jobs.len()), (3, 3));
    assert_eq!(thread.present.reservation, None);
    assert_eq!(seen(&mut replay, 250).present.why, "so it was <reserved>");
    // A refusal leaves a thread the reservation that it has.
    let kept = seen(&mut replay, 400);
    assert_eq!(
        (kept.state, kept.counted.missed, kept.counted.jobs),
        (State::Kept, 0, 9)
    );
    assert_eq!(kept.present.why, "so it was <refused>");
    let held = kept.present.reservation.map(|held| held.bandwidth());
    assert_eq!(held, Some(Bandwidth::from_cpus(0.25)));
    assert_eq!(kept.executed, Span::from_ms(72));
    let end = seen(&mut replay, 5000);
    assert_eq!(
        (
            end.state,
            end.present.reservation,
            end.counted.jobs,
            end.counted.missed
        ),
        (State::TakenOver, None, 50, 1)
    );
}

#[test]
fn the_sums_of_an_application_are_told_at_the_end() {
    let mut replay = replay();
    let early = replay.after(Span::from_ms(1000));
    assert!(early.applications.is_empty());
    let end = replay.after(replay.length());
    assert_eq!(end.threads[0].served.application, end.applications[0].pid);
    assert_eq!(end.applications[0].jobs, 50);
}

#[test]
fn a_report_without_history_or_of_nonsense_is_shown_as_far_as_it_goes() {
    let nothing = json!({"threads": [], "elapsed_ns": 0});
    let mut replay = TopReplay::new(&serde_json::from_value(nothing).unwrap());
    assert_eq!(replay.length(), Span::ZERO);
    assert!(replay.after(Span::MAX).threads.is_empty());
    let wild = json!({
        "threads": [{"tid": 1, "started_ticks": 0, "pid": 1, "comm": "\u{1b}[2J", "state": "kept", "period_ns": 0, "jobs": 1,
            "missed": u64::MAX, "response_time": null}],
        "elapsed_ns": 1,
        "history": [{"tid": 1, "started_ticks": 0, "wakeups_ns": [u64::MAX, 0, 5], "recent_jobs": {
            "release_ns": [u64::MAX, 3], "deadline_ns": [0, 0], "ended_ns": [7, u64::MAX], "executed_ns": [1, 2]}}],
        "decisions": [{"at_ns": u64::MAX, "tid": 1, "started_ticks": 0, "what": "changed", "why": "", "old": null,
            "new": {"runtime_ns": 1, "deadline_ns": u64::MAX, "period_ns": u64::MAX}}],
    });
    let mut replay = TopReplay::new(&serde_json::from_value(wild).unwrap());
    let seen = replay.after(Span::MAX).threads;
    assert_eq!((seen[0].state, seen[0].counted.missed), (State::Kept, 2));
}
