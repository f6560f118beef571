//! Periods worth following: differences between wakeups that occur far more often than by chance.
//!
//! All differences of a wakeup to the next few are counted in a histogram of equal ratios. The bins
//! come from the bits of the floating-point number, whose exponent and first mantissa bits are a
//! piecewise-linear logarithm, so a difference costs an addition and a shift.

use super::false_alarm::divergence;
use super::trains::Train;
use super::{ALIKE, LAGS, LONGEST_NS, SHORTEST_NS};

/// 32 bins an octave: one and a half of them, to which the smoothing reaches, are what is `alike`.
/// 13 octaves are more than the range of periods.
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
        let longest = LONGEST_NS.min(train.length() / super::turns());
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
        self.score(train, longest);
        self.scored.sort_unstable_by(|a, b| b.1.total_cmp(&a.1));
        self.proposed.clear();
        for &(period, score) in &self.scored {
            if self.proposed.len() == most {
                break;
            }
            if self
                .proposed
                .iter()
                .all(|p| (p.0 / period - 1.0).abs() > ALIKE)
            {
                self.proposed.push((period, score));
            }
        }
    }

    /// Scores the local maxima of the histogram smoothed over a bin on each side, as if each
    /// difference were a beat met.
    fn score(&mut self, train: &Train, longest: f64) {
        let counts = &self.counts;
        let sum = |bin: usize| -> u32 { counts[bin - 1..=bin + 1].iter().sum() };
        for bin in 2..BINS - 2 {
            let here = sum(bin);
            if here < super::enough_for_a_line() as u32
                || here < sum(bin - 1)
                || here <= sum(bin + 1)
            {
                continue;
            }
            let (from, to) = (edge(bin - 1), edge(bin + 2));
            let mut weight = 0.0;
            let mut period = 0.0;
            for (b, &count) in (bin - 1..).zip(&counts[bin - 1..=bin + 1]) {
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
