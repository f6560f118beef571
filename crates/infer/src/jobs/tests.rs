use super::*;
use crate::synthetic::Random;
use onbeat_model::{Instant, TaskId};

const PERIOD: u64 = 40_000_000;
const PHASE: u64 = 1_000_000_000;

fn rhythm() -> Rhythm {
    Rhythm {
        period: Span::from_ns(PERIOD),
        phase: Instant::from_ns(PHASE),
        jitter: Span::from_us(100),
        confidence: 1.0,
    }
}

fn burst(woke: f64, blocked: f64) -> Burst {
    let at = |ms: f64| Instant::from_ns((PHASE as f64 + ms * 1e6) as u64);
    Burst {
        blocked: at(blocked),
        ..Burst::alone(
            TaskId::recorded(1),
            at(woke),
            at(blocked).since(at(woke)) / 2,
        )
    }
}

fn separate(bursts: &[Burst]) -> Vec<Job> {
    let mut separator = Separator::new(rhythm());
    let mut jobs: Vec<Job> = bursts.iter().filter_map(|b| separator.hear(b)).collect();
    jobs.extend(separator.finish());
    assert_eq!(separator.finish(), None);
    jobs
}

/// Which beat each job is, counted from the phase, and how many bursts it has.
fn beats(jobs: &[Job]) -> Vec<(i64, u32)> {
    jobs.iter()
        .map(|job| {
            let since = job.release.offset_from(Instant::from_ns(PHASE));
            assert_eq!(since % PERIOD as i64, 0);
            (since / PERIOD as i64, job.bursts)
        })
        .collect()
}

#[test]
fn a_jobs_execution_time_is_its_cycles_whatever_speeds_it_had() {
    let mut separator = Separator::new(rhythm());
    // 2 ms at full speed, 6 ms at a third of it: 4 ms at full speed.
    assert_eq!(separator.hear(&burst(0.0, 4.0)), None);
    separator.speed_changed(3.0);
    assert_eq!(separator.hear(&burst(5.0, 17.0)), None);
    separator.speed_changed(1.0 / 3.0);
    let executed = separator.finish().unwrap().executed;
    assert!(executed.abs_diff(Span::from_ms(4)) < Span::from_us(1));
}

#[test]
fn a_burst_past_the_next_release_is_a_late_job_and_the_next_one_follows_it() {
    let jobs = separate(&[burst(0.0, 52.0), burst(52.2, 60.0), burst(80.0, 85.0)]);
    assert_eq!(beats(&jobs), [(0, 1), (1, 1), (2, 1)]);
    assert_eq!(jobs[0].ended.since(jobs[0].deadline), Span::from_ms(12));
    assert_eq!(jobs[1].response_time(), Span::from_ms(20));
    assert!(!jobs[1].missed());
}

#[test]
fn a_new_rhythm_leaves_the_job_at_hand_its_release() {
    let mut separator = Separator::new(rhythm());
    assert_eq!(separator.hear(&burst(0.0, 5.0)), None);
    separator.retune(Rhythm {
        phase: Instant::from_ns(PHASE + 1_000_000),
        ..rhythm()
    });
    let job = separator.hear(&burst(41.0, 45.0)).unwrap();
    assert_eq!(job.release, Instant::from_ns(PHASE));
    let job = separator.finish().unwrap();
    assert_eq!(job.release, Instant::from_ns(PHASE + 41_000_000));
}

#[test]
fn a_rhythm_without_a_period_gives_a_job_a_burst_and_no_panic() {
    let mut separator = Separator::new(Rhythm {
        period: Span::ZERO,
        ..rhythm()
    });
    assert_eq!(separator.hear(&burst(0.0, 5.0)), None);
    assert!(separator.hear(&burst(41.0, 45.0)).is_some());
}

/// The slow twin: every beat in a list, every rule spelled out on beat numbers, the whole history
/// at hand. Gives the beat of each burst.
fn twin(bursts: &[Burst]) -> Vec<usize> {
    let beats: Vec<u64> = (0..400).map(|k| PHASE + k * PERIOD).collect();
    let slack = PERIOD / 50;
    let mut assigned: Vec<usize> = Vec::new();
    for (i, b) in bursts.iter().enumerate() {
        let own = (0..beats.len())
            .rfind(|&k| beats[k] <= b.woke.as_ns() + slack)
            .unwrap();
        let Some(&current) = assigned.last() else {
            assigned.push(own);
            continue;
        };
        let ended = (0..i)
            .filter(|&j| assigned[j] == current)
            .map(|j| bursts[j].blocked.as_ns())
            .max()
            .unwrap();
        let catches_up = ended > beats[current + 1] && b.woke.as_ns() <= ended + slack;
        assigned.push(if own <= current {
            current
        } else if catches_up {
            current + 1
        } else {
            own
        });
    }
    assigned
}

#[test]
fn the_separator_agrees_with_its_slow_twin_on_any_mix_of_sleeps_and_overruns() {
    let mut noise = Random::new(7);
    let mut random = |below| noise.below(below);
    for _ in 0..300 {
        let mut at = PHASE;
        let mut bursts = Vec::new();
        for _ in 0..40 {
            let asleep = [300_000, 2_000_000, 30_000_000, 90_000_000][random(4) as usize];
            let awake = [1_000_000, 10_000_000, 39_000_000, 150_000_000][random(4) as usize];
            let woke = at + 1 + random(asleep);
            at = woke + 1 + random(awake);
            bursts.push(Burst {
                woke: Instant::from_ns(woke),
                first_ran: Instant::from_ns(woke),
                blocked: Instant::from_ns(at),
                executed: Span::from_ns(1 + random(at - woke)),
                ..burst(0.0, 0.0)
            });
        }
        let jobs = separate(&bursts);
        let assigned = twin(&bursts);
        let expected: Vec<(i64, u32)> = assigned
            .chunk_by(|a, b| a == b)
            .map(|same| (same[0] as i64, same.len() as u32))
            .collect();
        assert_eq!(beats(&jobs), expected);
        let whole: Span = bursts.iter().map(|b| b.executed).sum();
        assert_eq!(jobs.iter().map(|job| job.executed).sum::<Span>(), whole);
        assert!(
            jobs.windows(2)
                .all(|pair| pair[0].release < pair[1].release)
        );
    }
}
