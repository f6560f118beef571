//! The least energy of a scheduler that knows every job beforehand: the bound that schemes are
//! measured against.
//!
//! On one CPU, with jobs that may be interrupted, the schedule of Yao, Demers and Shenker (FOCS
//! 1995) meets all deadlines and takes the least energy for every convex power function at once:
//! the interval with the most work for its length runs at just that speed, and so on with what is
//! left. Where only some speeds exist, the power of a speed in between is that of sharing the time
//! between two of them, and idling is one more speed: the lower convex hull ([`Hull`]) of all of
//! them is convex again, and the same schedule is the least on it (Kwon and Kim, ACM TECS 2005).
//!
//! Changes of speed and switches are free here, so it is a bound for machines on which they are
//! not, too.

use onbeat_model::{Instant, Ladder, Span, Speed};

use crate::Work;
use crate::observe::Completion;
use crate::scenario::Power;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KnownJob {
    pub(crate) release: Instant,
    pub(crate) deadline: Instant,
    pub(crate) work: Work,
}

impl KnownJob {
    /// A job that need not end earlier than it did: with these the optimum is a bound for that very
    /// run, whatever it missed.
    pub(crate) fn as_late(job: &Completion) -> Self {
        Self {
            release: job.release,
            deadline: job.deadline.max(job.ended),
            work: job.demand,
        }
    }
}

/// A speed, as a share of the highest, and for how long. The rest of the time is idle.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Piece {
    pub(crate) time: Span,
    /// How fast: more than 1 where the jobs cannot all be in time.
    pub(crate) speed: f64,
}

pub(crate) fn schedule(jobs: &[KnownJob]) -> Vec<Piece> {
    let mut sorted: Vec<KnownJob> = jobs.iter().copied().filter(|j| !j.work.is_zero()).collect();
    sorted.sort_by_key(|job| (job.release, job.deadline));
    let mut pieces = Vec::new();
    let mut part: Vec<WorkInterval> = Vec::new();
    let mut ends = Instant::ZERO;
    for job in sorted {
        if job.release >= ends {
            part_of(&mut part, &mut pieces);
        }
        ends = ends.max(job.deadline);
        part.push(WorkInterval {
            from: job.release.as_ns(),
            to: job.deadline.max(job.release).as_ns(),
            work: job.work.as_span().as_ns(),
        });
    }
    part_of(&mut part, &mut pieces);
    pieces
}

#[derive(Clone, Copy, Debug)]
struct WorkInterval {
    from: u64,
    to: u64,
    work: u64,
}

fn part_of(jobs: &mut Vec<WorkInterval>, pieces: &mut Vec<Piece>) {
    while let Some((from, to, work)) = critical(jobs) {
        let length = to - from;
        pieces.push(Piece {
            time: Span::from_ns(length),
            speed: work as f64 / length as f64,
        });
        jobs.retain(|job| job.from < from || job.to > to);
        // The time of the interval is taken: for the others it is as if it were not there.
        let moved = |at: u64| if at >= to { at - length } else { at.min(from) };
        for job in jobs.iter_mut() {
            (job.from, job.to) = (moved(job.from), moved(job.to));
        }
    }
    jobs.clear();
}

/// From, to, and work of the interval with the most work for its length.
fn critical(jobs: &mut [WorkInterval]) -> Option<(u64, u64, u64)> {
    jobs.sort_unstable_by_key(|job| job.to);
    let mut begins: Vec<u64> = jobs.iter().map(|job| job.from).collect();
    begins.sort_unstable();
    begins.dedup();
    let mut best: Option<(u64, u64, u64)> = None;
    let mut most = 0.0;
    for from in begins {
        let mut work = 0;
        for job in jobs.iter().filter(|job| job.from >= from) {
            work += job.work;
            // A job without time takes a nanosecond: infinitely fast is no speed.
            let to = job.to.max(from + 1);
            let speed = work as f64 / (to - from) as f64;
            if speed > most {
                most = speed;
                best = Some((from, to, work));
            }
        }
    }
    best
}

/// The least power for each speed, if the time can be shared between the speeds that there are, and
/// idling.
#[derive(Clone, Debug)]
pub(crate) struct Hull {
    /// Speed and power, from idle to the highest.
    corners: Vec<(f64, f64)>,
}

impl Hull {
    pub(crate) fn of(speeds: &Ladder, power: &Power) -> Self {
        let highest = speeds.highest();
        let mut corners: Vec<(f64, f64)> = vec![(0.0, power.idle)];
        for ratio in speeds.speeds().map(|speed| speed.ratio(highest)) {
            let at = (ratio, power.busy(ratio));
            while let [.., a, b] = corners[..]
                && (b.1 - a.1) * (at.0 - a.0) >= (at.1 - a.1) * (b.0 - a.0)
            {
                corners.pop();
            }
            corners.push(at);
        }
        Self { corners }
    }

    /// The least power at a mean speed; none above the highest.
    pub(crate) fn power(&self, speed: f64) -> Option<f64> {
        let next = self.corners.iter().position(|corner| corner.0 >= speed)?;
        let above = self.corners[next];
        let below = self.corners[next.saturating_sub(1)];
        if above.0 <= below.0 {
            return Some(above.1);
        }
        let part = (speed - below.0) / (above.0 - below.0);
        Some(below.1 + part * (above.1 - below.1))
    }

    /// The energy of a schedule over `duration`, in seconds at full power; none if it needs more
    /// than the highest speed.
    pub(crate) fn energy(&self, pieces: &[Piece], duration: Span) -> Option<f64> {
        let busy: Span = pieces.iter().map(|piece| piece.time).sum();
        let each = pieces.iter().map(|piece| {
            let power = self.power(piece.speed)?;
            Some(piece.time.as_secs_f64() * power)
        });
        let idle = (duration - busy).as_secs_f64() * self.power(0.0)?;
        Some(each.sum::<Option<f64>>()? + idle)
    }
}

fn job(release: u64, deadline: u64, work: u64) -> KnownJob {
    KnownJob {
        release: Instant::from_ns(release),
        deadline: Instant::from_ns(deadline),
        work: Work::at_full_speed(Span::from_ns(work)),
    }
}

fn ladder(mhz: &[u64]) -> Ladder {
    Ladder::new(mhz.iter().filter_map(|mhz| Speed::from_khz(mhz * 1000))).unwrap()
}

#[test]
fn the_busiest_interval_has_its_own_speed_and_the_rest_gets_what_time_it_leaves() {
    // From 40 to 60 there are 18 to do; around it 20 in the 80 that are left.
    let pieces = schedule(&[job(0, 100, 20), job(40, 60, 18), job(200, 210, 1)]);
    let speeds: Vec<(u64, f64)> = pieces.iter().map(|p| (p.time.as_ns(), p.speed)).collect();
    assert_eq!(speeds, [(20, 0.9), (80, 0.25), (10, 0.1)]);
}

#[test]
fn the_power_between_two_speeds_is_that_of_sharing_the_time() {
    let power = Power::default();
    let hull = Hull::of(&ladder(&[500, 1000]), &power);
    assert_eq!(hull.power(0.75), Some((0.125 + 1.0) / 2.0));
    assert_eq!(hull.power(0.25), Some(0.125 / 2.0));
    assert_eq!(hull.power(1.01), None);
}
