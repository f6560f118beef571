//! The straight line from beat number to time, by least squares: its slope is the period, its start
//! the phase, the scatter around it the jitter.

use super::{EXACT_NS, FAR, FEWEST, LAGS, SAME};

/// Points that scatter by more than this share of the period follow no line: were they anywhere, it
/// would be 0.29.
const LOOSE: f64 = 0.2;

/// The steps of a thread that sleeps more or less evenly are spread over this much of their mean:
/// as points that just follow a line, to both sides.
pub(super) fn spread() -> f64 {
    2.0 * LOOSE
}

/// Releases scatter around their beats by at most this share of the period. `FAR` of more would be
/// most of the period, and every beat would be met.
pub(super) fn tight() -> f64 {
    LOOSE / 2.0
}

/// The largest deviation of a step that is followed, as a share of the period: of releases that
/// scatter as much as they may, none is farther off.
pub(super) fn tolerance() -> f64 {
    FAR * tight()
}

/// The median deviation of normal points in standard deviations is the inverse of this.
const DEVIATIONS: f64 = 1.4826;

/// A line `phase + period * beat`, in nanoseconds after the train's origin.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct FittedLine {
    pub(super) period: f64,
    pub(super) phase: f64,
    /// The standard deviation of the points around the line.
    pub(super) jitter: f64,
}

impl FittedLine {
    pub(super) fn time(&self, beat: i64) -> f64 {
        self.phase + self.period * beat as f64
    }

    pub(super) fn is_tight(&self) -> bool {
        self.jitter < LOOSE * self.period
    }

    pub(super) fn has_period(&self, period: f64) -> bool {
        (self.period / period - 1.0).abs() < SAME
    }

    pub(super) fn distance(&self, time: f64) -> f64 {
        let turns = (time - self.phase) / self.period;
        (turns - turns.round()).abs() * self.period
    }

    /// The point nearest to each beat, of those beats that are nearest to a point.
    pub(super) fn nearest(&self, at: &[f64]) -> Vec<(i64, f64)> {
        let mut releases: Vec<(i64, f64)> = Vec::new();
        for &time in at {
            let beat = ((time - self.phase) / self.period).round() as i64;
            match releases.last_mut() {
                Some(last) if last.0 == beat => {
                    if self.late((beat, time)).abs() < self.late(*last).abs() {
                        last.1 = time;
                    }
                }
                _ => releases.push((beat, time)),
            }
        }
        releases
    }

    pub(super) fn is_multiple_of(&self, other: &Self) -> bool {
        let ratio = self.period.max(other.period) / self.period.min(other.period);
        ratio < LAGS as f64 + 0.5 && (ratio / ratio.round() - 1.0).abs() < SAME
    }

    /// How far after its beat a point is.
    pub(super) fn late(&self, point: (i64, f64)) -> f64 {
        point.1 - self.time(point.0)
    }
}

pub(super) fn line(beats: impl Iterator<Item = (i64, f64)> + Clone) -> Option<FittedLine> {
    let (mut n, mut mean_beat, mut mean_time) = (0.0, 0.0, 0.0);
    for (beat, time) in beats.clone() {
        n += 1.0;
        mean_beat += beat as f64;
        mean_time += time;
    }
    if n < 3.0 {
        return None;
    }
    mean_beat /= n;
    mean_time /= n;
    let (mut square, mut product) = (0.0, 0.0);
    for (beat, time) in beats.clone() {
        let x = beat as f64 - mean_beat;
        square += x * x;
        product += x * (time - mean_time);
    }
    if square <= 0.0 || product <= 0.0 {
        return None;
    }
    let mut line = FittedLine {
        period: product / square,
        phase: mean_time - product / square * mean_beat,
        jitter: 0.0,
    };
    let scatter: f64 = beats.map(|beat| line.late(beat).powi(2)).sum();
    line.jitter = (scatter / (n - 2.0)).sqrt();
    Some(line)
}

/// The line through `beats` without the points that lie far out, judged by the median deviation: a
/// few wakeups that are no releases do not turn it.
pub(super) fn robust_line(beats: &[(i64, f64)], scratch: &mut Vec<f64>) -> Option<FittedLine> {
    without_far_points(line(beats.iter().copied())?, beats, scratch)
}

/// The line through those of `beats` that are not far from `best`. Three rounds, because the limit
/// shrinks with the points that are left out.
pub(super) fn without_far_points(
    mut best: FittedLine,
    beats: &[(i64, f64)],
    scratch: &mut Vec<f64>,
) -> Option<FittedLine> {
    for _ in 0..3 {
        scratch.clear();
        scratch.extend(beats.iter().map(|&b| best.late(b).abs()));
        let middle = scratch.len() / 2;
        let (_, &mut median, _) = scratch.select_nth_unstable_by(middle, f64::total_cmp);
        let limit = (FAR * DEVIATIONS * median).max(EXACT_NS);
        let near = |&beat: &(i64, f64)| best.late(beat).abs() <= limit;
        best = line(beats.iter().copied().filter(near))?;
    }
    Some(best)
}

/// The median step of one beat, and its scatter as a standard deviation per point (of the steps,
/// over the square root of two), from the median deviation.
pub(super) fn steps(beats: &[(i64, f64)], scratch: &mut Vec<f64>) -> Option<(f64, f64)> {
    let each = |w: &[(i64, f64)]| (w[1].1 - w[0].1) / (w[1].0 - w[0].0).max(1) as f64;
    scratch.clear();
    scratch.extend(beats.windows(2).map(each));
    let n = scratch.len();
    if n == 0 {
        return None;
    }
    let (_, &mut step, _) = scratch.select_nth_unstable_by(n / 2, f64::total_cmp);
    for deviation in scratch.iter_mut() {
        *deviation = (*deviation - step).abs();
    }
    let (_, &mut deviation, _) = scratch.select_nth_unstable_by(n / 2, f64::total_cmp);
    Some((step, DEVIATIONS * deviation / std::f64::consts::SQRT_2))
}

/// The mean square of the differences between the lateness of successive beats, over the variance
/// of the lateness (von Neumann, 1941): 2 if each beat is late on its own or none is late, little
/// if lateness adds up. The largest deviations are left out, as in the fit.
pub(super) fn von_neumann(beats: &[(i64, f64)], line: &FittedLine, scratch: &mut Vec<f64>) -> f64 {
    scratch.clear();
    let limit = (FAR * line.jitter).max(EXACT_NS);
    scratch.extend(
        beats
            .iter()
            .map(|&beat| line.late(beat))
            .filter(|late| late.abs() <= limit),
    );
    let n = scratch.len() as f64;
    let mean = scratch.iter().sum::<f64>() / n;
    let variance: f64 = scratch.iter().map(|l| (l - mean).powi(2)).sum::<f64>() / n;
    let differences: f64 = scratch.windows(2).map(|w| (w[1] - w[0]).powi(2)).sum();
    if variance > EXACT_NS * EXACT_NS {
        differences / (n - 1.0) / variance
    } else {
        2.0
    }
}

// The narrowest band around a line that holds all its points, for points that are late by anything
// up to a limit, as those of a thread that polls for its releases. The edges tell nearly
// everything: the slope of the band's middle (Chebyshev's line) is off by the order of 1/n of the
// interval over the length, where that of least squares is off by 1/sqrt(n).

/// Lateness with a smaller kurtosis has edges: half way from 1.8 (spread evenly) to 3 (normal).
const EDGED: f64 = 2.4;

/// The middle of the narrowest band around `beats`, if their lateness behind `line` has edges;
/// otherwise `line`. The beats ascend.
pub(super) fn sharpen(line: FittedLine, beats: &[(i64, f64)]) -> FittedLine {
    if beats.len() < FEWEST || kurtosis(&line, beats) > EDGED {
        return line;
    }
    let (mut lower, mut upper) = (Vec::new(), Vec::new());
    for &beat in beats {
        let point = (beat.0 as f64, line.late(beat));
        extend(&mut lower, point, 1.0);
        extend(&mut upper, point, -1.0);
    }
    // The band touches one edge of one hull and one corner of the other: try them all.
    let edges = |hull: &[(f64, f64)]| -> Vec<f64> {
        hull.windows(2)
            .map(|w| (w[1].1 - w[0].1) / (w[1].0 - w[0].0))
            .collect()
    };
    let mut best: Option<(f64, f64, f64)> = None;
    for slope in edges(&lower).into_iter().chain(edges(&upper)) {
        let above =
            |hull: &[(f64, f64)]| hull.iter().map(|p| p.1 - slope * p.0).collect::<Vec<_>>();
        let top = above(&upper).into_iter().fold(f64::NEG_INFINITY, f64::max);
        let bottom = above(&lower).into_iter().fold(f64::INFINITY, f64::min);
        if best.is_none_or(|b| top - bottom < b.0) {
            best = Some((top - bottom, slope, (top + bottom) / 2.0));
        }
    }
    best.map_or(line, |(_, slope, start)| FittedLine {
        period: line.period + slope,
        phase: line.phase + start,
        jitter: line.jitter,
    })
}

/// Appends a point to a convex hull, the lower one if `side` is 1, the upper one if it is -1.
fn extend(hull: &mut Vec<(f64, f64)>, point: (f64, f64), side: f64) {
    while let [.., a, b] = hull[..] {
        let turn = (b.0 - a.0) * (point.1 - a.1) - (b.1 - a.1) * (point.0 - a.0);
        if turn * side > 0.0 {
            break;
        }
        hull.pop();
    }
    hull.push(point);
}

fn kurtosis(line: &FittedLine, beats: &[(i64, f64)]) -> f64 {
    let n = beats.len() as f64;
    let mean = beats.iter().map(|&b| line.late(b)).sum::<f64>() / n;
    let moment = |power| {
        beats
            .iter()
            .map(|&b| (line.late(b) - mean).powi(power))
            .sum::<f64>()
            / n
    };
    moment(4) / moment(2).powi(2).max(f64::MIN_POSITIVE)
}
