//! At which speed a job runs, by how much it has computed (GRACE-OS, section 2.4).
//!
//! The energy of a cycle grows with the square of the speed, and a cycle is needed only if the job
//! demands so much. The expected energy of a job is the sum over the groups of the histogram of s
//! (1 - F) f^2, with the group's size s, the probability 1 - F that a job needs more, and its speed
//! f; the sum of s / f must fit into the time T (eq. 8 and 9). Without bounds on the speed the
//! least is at f proportional to the cube root of 1 / (1 - F) (eq. 12). A CPU has bounds; with them
//! the least is the same rule cut off at both ends, with the factor that fills T, which one
//! bisection finds.
//!
//! The paper's text has a job speed up when it has computed the *end* of a group, while its
//! condition on the time (eq. 9) counts the group itself at that speed; [`Schedule::as_written`] is
//! that. Here a group runs at its own speed, so that the time suffices. And what even the smallest
//! demand takes is needed by every job, however many demand just that: by the paper's 1 - F(b0) it
//! would cost nothing where all jobs are alike, and be computed at the highest speed.

use onbeat_model::{Ladder, Span, Speed};
use serde::Deserialize;

use super::histogram::Bound;

use super::{Budget, Histogram};

/// A job that has computed `after` runs at `speed` from there on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpeedPoint {
    pub after: Span,
    pub speed: Speed,
}

/// The speeds of a job: the first point is at zero, and both numbers grow from point to point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    first: Speed,
    later: Vec<SpeedPoint>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Rounding {
    /// The next higher one, for the whole group (the paper's).
    #[default]
    Up,
    /// A part of the group at the next lower one, the rest at the next higher one, so that the
    /// group takes the time it would at the wanted speed: closer, at the cost of more changes
    /// (Ishihara and Yasuura 1998).
    Two,
    /// Any speed from the lowest to the highest, for a CPU that has them all.
    Exact,
}

/// In what [`Schedule::as_written`] differs from the paper's text, to see what each is worth.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Differences {
    /// A group runs at its own speed, not at that of the boundary before it.
    pub own_speeds: bool,
    /// Eq. 12 is solved for speeds between the lowest and the highest.
    pub bounded: bool,
}

impl Schedule {
    /// The schedule of a job with this budget, the least expected energy within `time`.
    pub fn stochastic(
        histogram: &Histogram,
        budget: &Budget,
        time: Span,
        speeds: &Ladder,
        rounding: Rounding,
    ) -> Self {
        let groups = groups(histogram.up_to(budget));
        let highest = speeds.highest();
        let lowest = speeds.lowest().ratio(highest);
        let mut points = Vec::new();
        for (group, ratio) in groups.iter().zip(ideal(&groups, time, lowest)) {
            let wanted = wanted(ratio, speeds);
            let above = match rounding {
                Rounding::Up | Rounding::Two => speeds.at_least(wanted),
                Rounding::Exact => wanted.clamp(speeds.lowest(), highest),
            };
            let below = speeds.below(above).filter(|_| rounding == Rounding::Two);
            if let Some(below) = below {
                let slowly = part_at(below.ratio(highest), above.ratio(highest), ratio);
                if slowly > 0.0 {
                    points.push(SpeedPoint {
                        after: group.from,
                        speed: below,
                    });
                    points.push(SpeedPoint {
                        after: group.from + group.size.scale(slowly),
                        speed: above,
                    });
                    continue;
                }
            }
            points.push(SpeedPoint {
                after: group.from,
                speed: above,
            });
        }
        Self::merged(speeds.lowest(), &points)
    }

    /// The paper's own, for comparison: of each boundary b(i) a point at which the speed becomes
    /// f(b(i)), by eq. 12 without bounds, then rounded up; a job begins at f(b0). So each group
    /// runs at the speed of the boundary before it, and a job within its budget may take longer
    /// than `time`. A boundary that no job went beyond asks for the highest speed. With both
    /// `differences` it differs from [`Self::stochastic`] only in what the first group costs.
    pub fn as_written(
        histogram: &Histogram,
        budget: &Budget,
        time: Span,
        speeds: &Ladder,
        differences: Differences,
    ) -> Self {
        let groups = groups_as_written(histogram.up_to(budget));
        let ratios = if differences.bounded {
            let lowest = speeds.lowest().ratio(speeds.highest());
            ideal(&groups, time, lowest)
        } else {
            unbounded(&groups, time)
        };
        let points: Vec<SpeedPoint> = groups
            .iter()
            .zip(ratios)
            .enumerate()
            .map(|(at, (group, ratio))| {
                let own_begin = differences.own_speeds || at == 0;
                SpeedPoint {
                    after: if own_begin {
                        group.from
                    } else {
                        group.from + group.size
                    },
                    speed: speeds.at_least(wanted(ratio, speeds)),
                }
            })
            .collect();
        Self::merged(speeds.lowest(), &points)
    }

    /// Points at which the speed does not grow are left out.
    fn merged(lowest: Speed, points: &[SpeedPoint]) -> Self {
        let mut schedule = Self {
            first: points.first().map_or(lowest, |point| point.speed),
            later: Vec::new(),
        };
        for point in points {
            if point.speed > schedule.last() {
                schedule.later.push(*point);
            }
        }
        schedule
    }

    fn last(&self) -> Speed {
        self.later.last().map_or(self.first, |point| point.speed)
    }

    pub fn points(&self) -> impl Iterator<Item = SpeedPoint> + '_ {
        let first = SpeedPoint {
            after: Span::ZERO,
            speed: self.first,
        };
        std::iter::once(first).chain(self.later.iter().copied())
    }
}

fn wanted(ratio: f64, speeds: &Ladder) -> Speed {
    // A hundredth of a kHz above a speed that there is must not cost the next one.
    let khz = (ratio * speeds.highest().as_khz() as f64 - 0.01).ceil() as u64;
    Speed::from_khz(khz).unwrap_or(speeds.lowest())
}

#[derive(Clone, Copy, Debug)]
pub(super) struct WorkGroup {
    pub(super) from: Span,
    pub(super) size: Span,
    /// The probability that a job needs more than this group, 1 - F; 1 for the first one, which
    /// each job needs.
    pub(super) beyond: f64,
}

pub(super) fn groups(bounds: &[Bound]) -> Vec<WorkGroup> {
    let mut groups = groups_as_written(bounds);
    if let Some(first) = groups.first_mut() {
        first.beyond = 1.0;
    }
    groups
}

fn groups_as_written(bounds: &[Bound]) -> Vec<WorkGroup> {
    let begins = std::iter::once(Span::ZERO).chain(bounds.iter().map(|bound| bound.demand));
    begins
        .zip(bounds)
        .filter(|(from, bound)| *from < bound.demand)
        .map(|(from, bound)| WorkGroup {
            from,
            size: bound.demand - from,
            beyond: (1.0 - bound.within).max(0.0),
        })
        .collect()
}

/// Eq. 12: the speed of each group as a ratio of the highest one; the highest for a group that no
/// job needed more than.
fn unbounded(groups: &[WorkGroup], time: Span) -> Vec<f64> {
    let roots = || groups.iter().map(|group| group.beyond.cbrt());
    let sizes = groups.iter().map(|group| group.size.as_ns() as f64);
    let sum: f64 = sizes.zip(roots()).map(|(size, root)| size * root).sum();
    roots()
        .map(|root| {
            let ratio = sum / (time.as_ns() as f64 * root);
            if ratio < 1.0 { ratio } else { 1.0 }
        })
        .collect()
}

/// The speed of each group as a ratio of the highest one: from `lowest` to 1, of the least expected
/// energy among those that fit into `time`; all 1 if even these do not.
pub(super) fn ideal(groups: &[WorkGroup], time: Span, lowest: f64) -> Vec<f64> {
    let speeds = |factor: f64| {
        groups.iter().map(move |group| {
            // No job ever needed the last group: it costs no expected energy, so it takes no time.
            (factor / group.beyond.cbrt()).clamp(lowest, 1.0)
        })
    };
    let fits = |factor: f64| {
        let sizes = groups.iter().map(|group| group.size.as_ns() as f64);
        let taken: f64 = sizes
            .zip(speeds(factor))
            .map(|(size, speed)| size / speed)
            .sum();
        taken <= time.as_ns() as f64
    };
    // From a factor at which all groups are at the lowest speed or beyond it, to one where all are
    // at full.
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        if fits(middle) {
            high = middle;
        } else {
            low = middle;
        }
    }
    speeds(high).collect()
}

/// Which part of the work is done at `below` if the rest is done at `above` and the whole takes as
/// long as at `wanted`.
fn part_at(below: f64, above: f64, wanted: f64) -> f64 {
    ((1.0 / wanted - 1.0 / above) / (1.0 / below - 1.0 / above)).clamp(0.0, 1.0)
}
