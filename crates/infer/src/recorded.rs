//! A thread all of whose bursts are known: its rhythm over the whole recording, and its jobs.
//!
//! The same analyser, tracker and separator as in the loop, but the analyser sees everything
//! before it is asked, so that jobs are known from the first burst on.
//!
//! Assumption: the bursts are one thread's, in the order of their wakeups.

use onbeat_model::{Burst, Instant, Job, Rhythm, Span};

use crate::jobs::Separator;
use crate::period::{self, Beat, Tracker};

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Recorded {
    pub job: Job,
    pub blocked: Span,
}

/// The rhythms of these bursts within `window` up to `to`, the strongest first; none if they
/// are not periodic.
#[must_use]
pub fn rhythms(bursts: &[Burst], window: Span, to: Instant) -> Vec<Rhythm> {
    let mut analyser = period::Analyser::new(period::AnalyserConfig {
        window,
        capacity: bursts.len(),
        ..period::AnalyserConfig::default()
    });
    for burst in bursts {
        analyser.hear(burst);
    }
    analyser.analyse(to)
}

/// The jobs that the bursts are, along the beats of `rhythm`, whose drift is followed as in the
/// loop.
#[must_use]
pub fn jobs(bursts: &[Burst], rhythm: Rhythm) -> Vec<Recorded> {
    let Some(first) = bursts.first() else {
        return Vec::new();
    };
    let mut tracker = Tracker::new(Rhythm {
        phase: rhythm.nearest_release(first.woke).0,
        ..rhythm
    });
    let mut separator = Separator::new(rhythm);
    let mut jobs = Vec::new();
    let mut blocked = Span::ZERO;
    let mut last: Option<&Burst> = None;
    for burst in bursts {
        let beat = tracker.hear(burst);
        match separator.hear(burst) {
            Some(job) => {
                jobs.push(Recorded { job, blocked });
                blocked = Span::ZERO;
            }
            None => blocked += last.map_or(Span::ZERO, |last| burst.woke.since(last.blocked)),
        }
        if beat == Beat::Kept {
            separator.retune(tracker.rhythm());
        }
        last = Some(burst);
    }
    let job = separator.finish();
    jobs.extend(job.map(|job| Recorded { job, blocked }));
    jobs
}

#[cfg(test)]
mod tests {
    use onbeat_model::TaskId;

    use super::*;

    fn burst(woke_us: u64, executed_us: u64) -> Burst {
        let woke = Instant::ZERO + Span::from_us(woke_us);
        Burst::alone(TaskId::recorded(1), woke, Span::from_us(executed_us))
    }

    #[test]
    fn a_job_of_two_bursts_has_the_time_of_both_and_what_lay_between() {
        let bursts: Vec<Burst> = (1..100)
            .flat_map(|beat| {
                [
                    burst(beat * 20_000, 3_000),
                    burst(beat * 20_000 + 5_000, 1_000),
                ]
            })
            .collect();
        let to = Instant::ZERO + Span::from_secs(2);
        let rhythm = rhythms(&bursts, Span::from_secs(2), to)[0];
        assert!(rhythm.period.abs_diff(Span::from_ms(20)) < Span::from_us(10));
        let jobs = jobs(&bursts, rhythm);
        assert_eq!(jobs.len(), 99);
        for recorded in jobs {
            assert_eq!(recorded.job.executed, Span::from_ms(4));
            assert_eq!(recorded.job.bursts, 2);
            assert_eq!(recorded.blocked, Span::from_ms(2));
        }
    }

    #[test]
    fn a_beat_that_drifts_is_followed_over_a_long_recording() {
        // Two milliseconds in a hundred seconds: a fixed beat of the mean period would be off by
        // half a millisecond.
        let at = |beat: u64| beat * 4_000 + beat * beat / 312_500;
        let bursts: Vec<Burst> = (1..25_000).map(|beat| burst(at(beat), 500)).collect();
        let to = Instant::ZERO + Span::from_secs(101);
        let rhythm = rhythms(&bursts, Span::from_secs(101), to)[0];
        let jobs = jobs(&bursts, rhythm);
        assert_eq!(jobs.len(), bursts.len());
        let late = jobs.iter().filter(|recorded| recorded.job.missed());
        assert_eq!(late.count(), 0);
        for Recorded { job, .. } in &jobs[100..] {
            assert!(job.woke.offset_from(job.release).abs() < 50_000, "{job:?}");
        }
    }
}
