//! Follows a period through a train: the best run of points, each a whole number of periods after
//! the one before, up to a tolerance.
//!
//! Dynamic programming over the points, as in local sequence alignment (Smith and Waterman, 1981):
//! a point gains one, a beat left out and a deviation cost, and a run may begin and end anywhere.
//! So wakeups between the beats do not matter, a start-up before the rhythm is left aside, and the
//! period needs to be known only to the tolerance, not to tolerance over length.

use super::LAGS;
use super::fit;
use super::trains::Train;

/// The cost of a beat left out, where a beat met gains one.
const MISSED: f64 = 0.5;

/// How many periods may lie between two points of a run: a point after more of them gains less than
/// the beats left out cost.
fn leap() -> usize {
    1 + (1.0 / MISSED) as usize
}

#[derive(Clone, Debug, Default)]
pub(super) struct Chain {
    score: Vec<f64>,
    /// The point before, and the beats between.
    from: Vec<(u32, u8)>,
    /// Beat number and time, ascending: the run found.
    pub(super) beats: Vec<(i64, f64)>,
}

impl Chain {
    /// Takes every point of `train` for a release; a gap of several usual ones leaves beats out.
    pub(super) fn each_point_a_beat(&mut self, train: &Train) {
        let usual = train.median_gap();
        self.beats.clear();
        let mut beat = 0;
        let mut last: Option<f64> = None;
        for &at in &train.at {
            if let Some(last) = last {
                // A pause is taken for no more beats than fit, so that their numbers stay exact.
                beat += i64::from((((at - last) / usual).round() as u32).max(1));
            }
            self.beats.push((beat, at));
            last = Some(at);
        }
    }

    /// Finds the best run of `period` through `train`; its points are then in `beats`.
    pub(super) fn follow(&mut self, train: &Train, period: f64) {
        let at = &train.at;
        self.score.clear();
        self.from.clear();
        let reach = fit::tolerance() * period;
        let per_reach = 1.0 / reach;
        let mut first = vec![0_usize; leap()];
        let mut nearest = vec![0_usize; leap()];
        let mut best = (0.0, 0);
        for (j, &to) in at.iter().enumerate() {
            let mut score = 1.0;
            let mut from = (u32::MAX, 0);
            for (leap, (first, nearest)) in first.iter_mut().zip(&mut nearest).enumerate() {
                let due = to - (leap + 1) as f64 * period;
                while at[*first] < due - reach {
                    *first += 1;
                }
                while at[*nearest] < due {
                    *nearest += 1;
                }
                let from_here = nearest.saturating_sub(LAGS).max(*first);
                let points = at.iter().zip(&self.score).enumerate();
                for (i, (&earlier, &so_far)) in points.take(*nearest + LAGS).skip(from_here) {
                    let deviation = (earlier - due) * per_reach;
                    if deviation > 1.0 {
                        break;
                    }
                    let reached = 1.0 + so_far - MISSED * leap as f64 - deviation * deviation;
                    if reached > score {
                        score = reached;
                        from = (i as u32, leap as u8 + 1);
                    }
                }
            }
            if score > best.0 {
                best = (score, j);
            }
            self.score.push(score);
            self.from.push(from);
        }
        self.beats.clear();
        let mut beat = 0;
        let mut j = best.1;
        while let (Some(&time), Some(&(before, beats))) = (at.get(j), self.from.get(j)) {
            self.beats.push((beat, time));
            beat -= i64::from(beats);
            j = before as usize;
        }
        self.beats.reverse();
    }
}
