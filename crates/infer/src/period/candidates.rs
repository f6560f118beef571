//! Periods worth following: differences between wakeups that occur far more often than by chance.
//!
//! All differences of a wakeup to the next few are counted in a histogram of equal ratios. The bins
//! come from the bits of the floating-point number, whose exponent and first mantissa bits are a
//! piecewise-linear logarithm, so a difference costs an addition and a shift.

use super::evidence::divergence;
use super::view::Train;

/// The shortest period looked for, 0.5 ms, in nanoseconds (1% shorter, for the fit to decide).
pub(super) const SHORTEST_NS: f64 = 0.495e6;
/// The longest, 1 s.
pub(super) const LONGEST_NS: f64 = 1.01e9;

/// The differences of a wakeup to so many after it are counted: each of a job's wakeups has one to
/// the next job, where a job has at most as many.
const LAGS: usize = 8;
/// 32 bins an octave.
const SHIFT: u32 = 23 - 5;
const BINS: usize = 32 * 13;

/// The histogram and what it proposes, kept for its memory.
#[derive(Clone, Debug)]
pub(super) struct Candidates {
    counts: Vec<u32>,
    scored: Vec<(f64, f64)>,
    /// Periods proposed, best first, with their scores.
    pub(super) proposed: Vec<(f64, f64)>,
}

impl Default for Candidates {
    fn default() -> Self {
        Self {
            counts: vec![0; BINS],
            scored: Vec::new(),
            proposed: Vec::new(),
        }
    }
}

fn edge(bin: usize) -> f64 {
    f64::from(f32::from_bits(
        ((bin as u32) << SHIFT) + (SHORTEST_NS as f32 * 0.7).to_bits(),
    ))
}

impl Candidates {
    /// Proposes at most `most` periods of `train`.
    pub(super) fn propose(&mut self, train: &Train, most: usize) {
        self.scored.clear();
        self.counts.fill(0);
        let longest = LONGEST_NS.min(train.length() / 3.5);
        let base = (SHORTEST_NS as f32 * 0.7).to_bits();
        for (i, &from) in train.at.iter().enumerate() {
            for &to in train.at.iter().skip(i + 1).take(LAGS) {
                let difference = to - from;
                if difference > longest {
                    break;
                }
                let bin = ((difference as f32).to_bits().saturating_sub(base) >> SHIFT) as usize;
                if let Some(count) = self.counts.get_mut(bin) {
                    *count += 1;
                }
            }
        }
        // Bin 0 also took every shorter difference.
        self.counts[0] = 0;
        for reach in [1_usize, 6] {
            self.score(train, reach, longest);
        }
        self.scored.sort_unstable_by(|a, b| b.1.total_cmp(&a.1));
        self.proposed.clear();
        for &(period, score) in &self.scored {
            if self.proposed.len() == most {
                break;
            }
            if self
                .proposed
                .iter()
                .all(|p| (p.0 / period - 1.0).abs() > 0.06)
            {
                self.proposed.push((period, score));
            }
        }
    }

    /// Scores the local maxima of the histogram smoothed over `reach` bins on each side, as if each
    /// difference were a beat met.
    fn score(&mut self, train: &Train, reach: usize, longest: f64) {
        let counts = &self.counts;
        let sum = |bin: usize| -> u32 { counts[bin - reach..=bin + reach].iter().sum() };
        for bin in reach + 1..BINS - reach - 1 {
            let here = sum(bin);
            if here < 3 || here < sum(bin - 1) || here <= sum(bin + 1) {
                continue;
            }
            let (from, to) = (edge(bin - reach), edge(bin + reach + 1));
            let mut weight = 0.0;
            let mut period = 0.0;
            for (b, &count) in (bin - reach..).zip(&counts[bin - reach..=bin + reach]) {
                weight += f64::from(count);
                period += f64::from(count) * (edge(b) + edge(b + 1)) / 2.0;
            }
            period /= weight;
            if !(SHORTEST_NS..=longest).contains(&period) {
                continue;
            }
            let beats = (train.length() / period).max(f64::from(here));
            let score = divergence(beats, f64::from(here), train.coverage(to - from));
            self.scored.push((period, score));
        }
    }
}
