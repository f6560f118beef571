use super::*;
use onbeat_model::TaskId;

fn mark(said: Said, at: u64, woke: u64, executed: u64) -> Mark {
    Mark {
        at: ms(at),
        task: TaskId::recorded(1),
        woke: ms(woke),
        executed: Span::from_ms(executed),
        said,
    }
}

fn ms(ms: u64) -> Instant {
    Instant::ZERO + Span::from_ms(ms)
}

fn start(period: u64) -> Mark {
    let period = Span::from_ms(period);
    let said = Said::RealTimeStarted {
        period,
        permille: 950,
    };
    mark(said, 1, 0, 0)
}

/// One job from its wakeup for `long`, beginning a millisecond after the wakeup.
fn job(told: &mut MarkedJobs, woke: u64, long: u64, executed: &mut u64) -> Job {
    let begun = mark(Said::JobBegan, woke + 1, woke, *executed);
    assert_eq!(told.hear(&begun), None);
    *executed += long;
    let ended = mark(Said::JobEnded, woke + 1 + long, woke, *executed);
    told.hear(&ended).expect("it began")
}

#[test]
fn jobs_lie_between_the_marks_and_are_released_by_the_wakeup() {
    let (mut told, mut cpu) = (MarkedJobs::default(), 100);
    for n in 0..20 {
        let job = job(&mut told, 1000 + 40 * n, 7, &mut cpu);
        assert_eq!(job.release, ms(1000 + 40 * n));
        assert_eq!(job.executed, Span::from_ms(7));
        assert_eq!(job.response_time(), Span::from_ms(8));
        if n >= 3 {
            assert_eq!(job.deadline, ms(1040 + 40 * n));
        }
    }
    let rhythm = told.rhythm().unwrap();
    assert_eq!(rhythm.period, Span::from_ms(40));
    assert_eq!((rhythm.jitter, rhythm.confidence), (Span::ZERO, 1.0));
}

#[test]
fn a_thread_that_is_behind_keeps_its_period_and_its_deadlines() {
    let (mut told, mut cpu) = (MarkedJobs::default(), 0);
    for n in 0..5 {
        job(&mut told, 40 * n, 10, &mut cpu);
    }
    // The sixth job lasts until 290; the next two follow without sleep.
    job(&mut told, 200, 89, &mut cpu);
    for (begin, release) in [(290, 240), (300, 280)] {
        assert_eq!(told.hear(&mark(Said::JobBegan, begin, 200, cpu)), None);
        cpu += 9;
        let ended = told
            .hear(&mark(Said::JobEnded, begin + 9, 200, cpu))
            .unwrap();
        assert_eq!(
            (ended.release, ended.deadline),
            (ms(release), ms(release + 40))
        );
        assert_eq!(ended.executed, Span::from_ms(9));
    }
    let caught_up = job(&mut told, 320, 10, &mut cpu);
    assert_eq!(caught_up.release, ms(320));
    assert_eq!(told.rhythm().unwrap().period, Span::from_ms(40));
}

#[test]
fn a_declared_period_counts_and_a_contradiction_of_what_is_marked_is_told() {
    let (mut told, mut cpu) = (MarkedJobs::default(), 0);
    told.hear(&start(40));
    assert_eq!(told.rhythm(), None);
    job(&mut told, 100, 5, &mut cpu);
    assert_eq!(told.rhythm().unwrap().period, Span::from_ms(40));

    assert_eq!(told.overruns().map(|o| (o * 1000.0).round()), Some(50.0));

    let marked = |declared| {
        let (mut told, mut cpu) = (MarkedJobs::default(), 0);
        told.hear(&start(declared));
        for n in 0..5 {
            job(&mut told, 100 + 40 * n, 5, &mut cpu);
        }
        assert_eq!(told.rhythm().unwrap().period, Span::from_ms(declared));
        told.contradiction()
    };
    assert_eq!(marked(40), None);
    assert_eq!(marked(10), Some((Span::from_ms(10), Span::from_ms(40))));
}

#[test]
fn a_job_that_is_ended_twice_is_one() {
    let (mut told, mut cpu) = (MarkedJobs::default(), 0);
    told.hear(&start(40));
    for n in 0..5 {
        job(&mut told, 100 + 40 * n, 5, &mut cpu);
        let again = mark(Said::JobEnded, 105 + 40 * n, 100 + 40 * n, cpu);
        assert_eq!(told.hear(&again), None);
    }
    assert_eq!(told.contradiction(), None);
}

#[test]
fn a_thread_that_says_only_where_jobs_end_has_jobs_from_its_wakeups() {
    let mut told = MarkedJobs::default();
    let ended = |n: u64| mark(Said::JobEnded, 40 * n + 8, 40 * n, 7 * n);
    assert_eq!(told.hear(&ended(1)), None, "the first is only a beginning");
    for n in 2..10 {
        let job = told.hear(&ended(n)).unwrap();
        assert_eq!(job.release, ms(40 * n));
        assert_eq!(job.executed, Span::from_ms(7));
    }
    assert_eq!(told.rhythm().unwrap().period, Span::from_ms(40));
}

#[test]
fn what_a_thread_does_between_its_jobs_counts_but_not_after_a_pause() {
    let (mut told, mut cpu) = (MarkedJobs::default(), 0);
    told.hear(&start(40));
    let took = |told: &mut MarkedJobs, woke, cpu: &mut u64| {
        *cpu += 3;
        job(told, woke, 5, cpu).executed
    };
    assert_eq!(took(&mut told, 100, &mut cpu), Span::from_ms(5));
    assert_eq!(took(&mut told, 140, &mut cpu), Span::from_ms(8));
    assert_eq!(took(&mut told, 9000, &mut cpu), Span::from_ms(5));
}

#[test]
fn whatever_is_said_jobs_are_possible() {
    let mut told = MarkedJobs::default();
    let mut x: u64 = 3;
    let (mut at, mut cpu) = (0, 0);
    for _ in 0..20_000 {
        x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        at += x >> 60;
        cpu += x >> 62;
        let said = match x >> 40 & 7 {
            0..=2 => Said::JobBegan,
            3..=5 => Said::JobEnded,
            6 => Said::RealTimeStarted {
                period: Span::from_ns(x >> 20),
                permille: 0,
            },
            _ if x >> 50 & 15 == 0 => Said::RealTimeExited,
            _ => Said::MissedDeadline,
        };
        // Also after the mark, and begins come out of order.
        let woke = (at + 2).saturating_sub(x >> 30 & 31);
        let is_late = said == Said::JobBegan && x >> 20 & 15 == 0;
        let at = at.saturating_sub(if is_late { x >> 10 & 63 } else { 0 });
        if let Some(job) = told.hear(&mark(said, at, woke, cpu)) {
            assert!(
                job.release <= job.started && job.started <= job.ended,
                "{job:?}"
            );
            assert!(
                job.woke <= job.started && job.deadline >= job.release,
                "{job:?}"
            );
        }
        if let Some(rhythm) = told.rhythm() {
            assert!(!rhythm.period.is_zero());
        }
    }
}

#[test]
fn a_period_that_no_reservation_serves_is_not_heard_and_what_is_seen_counts_all_the_same() {
    for (ns, is_heard) in [
        (1, false),
        (99_999, false),
        (100_000, true),
        (10_000_000_000, true),
        (10_000_000_001, false),
        (u64::MAX, false),
    ] {
        let period = Span::from_ns(ns);
        let (mut told, mut cpu) = (MarkedJobs::default(), 0);
        let permille = 950;
        let started = Said::RealTimeStarted { period, permille };
        told.hear(&mark(started, 1, 0, 0));
        let first = job(&mut told, 100, 5, &mut cpu);
        let heard = |told: &MarkedJobs| told.rhythm().map(|rhythm| rhythm.period);
        assert_eq!(heard(&told), is_heard.then_some(period));
        if !is_heard {
            assert_eq!((told.deadline(), first.deadline), (None, first.ended));
            for n in 1..5 {
                job(&mut told, 100 + 40 * n, 5, &mut cpu);
            }
            assert_eq!(heard(&told), Some(Span::from_ms(40)), "{period}");
        }
    }
}
