//! The narrowest band around a line that holds all its points, for points that are late by anything
//! up to a limit.
//!
//! A thread that polls for its releases comes late by anything up to the poll interval, and never
//! by more. Least squares makes poor use of such points: the edges tell nearly everything. The
//! middle of the narrowest band (Chebyshev's line) touches them, and its slope is off by the order
//! of 1/n of the interval over the length, where that of least squares is off by 1/sqrt(n).

use super::FEWEST;
use super::fit::FittedLine;

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
