//! Whether a period is a multiple of the true one, by the phases of all wakeups.
//!
//! The model is a grid: every wakeup has a phase (its time modulo the period), drawn from one
//! distribution, whatever its shape. A job that wakes its thread three times has three peaks;
//! jitter widens them; missed jobs and wakeups for nothing change little. The other model is a
//! phase that may be anything.
//!
//! The evidence is the logarithm of their Bayes factor: the marginal likelihood of the histogram of
//! phases under a symmetric Dirichlet prior, over that of even phases. The prior pays for each bin
//! that holds wakeups. Twice the period has each peak twice, and so less evidence; half of it,
//! where peaks may fall together, has less, too. So one figure compares a period with its
//! fractions. Gregory and Loredo (Astrophysical Journal 398, 1992) have this test for pulsars.

use super::fit::{self, Line};
use crate::tuning;

/// The weight of the prior in wakeups: one peak is expected.
const MASS: f64 = 1.0;

/// How many widths are tried, each at two places of its bins.
fn widths() -> usize {
    (tuning::finest() / tuning::coarsest()).ilog2() as usize + 1
}

/// The memory of the folding, kept between calls.
#[derive(Clone, Debug, Default)]
pub(super) struct Fold {
    half_bins: Vec<u32>,
    /// For each width, the logarithms of the weights of a bin by the number of its wakeups.
    weights: Vec<Vec<f64>>,
    /// The same of the whole histogram.
    totals: Vec<f64>,
}

/// Extends `sums` to `count` wakeups: the logarithms of the rising factorials of `from`.
fn extend(sums: &mut Vec<f64>, from: f64, count: usize) {
    if sums.is_empty() {
        sums.push(0.0);
    }
    while sums.len() <= count {
        let last = sums[sums.len() - 1];
        sums.push(last + ((sums.len() - 1) as f64 + from).ln());
    }
}

impl Fold {
    /// The fraction of `period`, not shorter than `shortest` (both in nanoseconds), that has more
    /// evidence than it, as the line through its releases; none if no line has most of its beats
    /// met. `at` are the wakeups, ascending, at least two.
    pub(super) fn fraction(&mut self, at: &[f64], period: f64, shortest: f64) -> Option<Line> {
        let mut most = self.evidence(at, period);
        let mut best = None;
        for parts in 2..=tuning::lags() {
            let tried = period / parts as f64;
            if tried < shortest {
                break;
            }
            let evidence = self.evidence(at, tried);
            if evidence > most
                && let Some(line) = self.line(at, tried)
            {
                (most, best) = (evidence, Some(line));
            }
        }
        best
    }

    /// The line through the releases of a grid of `period`, if most of its beats are met.
    fn line(&mut self, at: &[f64], period: f64) -> Option<Line> {
        let times = self.releases(at, period);
        let bins = 2 * tuning::finest();
        self.fill(&times, period, bins);
        let both = |i: usize| self.half_bins[i] + self.half_bins[(i + 1) % bins];
        let crest = (0..bins).max_by_key(|&bin| both(bin)).unwrap_or(0) + 1;
        let crowded = Line {
            period,
            phase: period * (crest as f64 / bins as f64),
            jitter: 0.0,
        };
        let releases = crowded.nearest(&times);
        let line = fit::without_far_points(crowded, &releases, &mut Vec::new())?;
        let reach = (tuning::far() * line.jitter).max(period / tuning::finest() as f64);
        let met = releases
            .iter()
            .filter(|&&release| line.late(release).abs() <= reach);
        let turns = (at[at.len() - 1] - at[0]) / period;
        (line.jitter < tuning::tight() * period
            && line.has_period(period)
            && met.count() as f64 >= tuning::met() * turns)
            .then_some(line)
    }

    /// The evidence of the best width and place of the bins, less what their choice costs.
    pub(super) fn evidence(&mut self, at: &[f64], period: f64) -> f64 {
        self.fill(at, period, 2 * tuning::finest());
        extend(&mut self.totals, MASS, at.len());
        let mut best = 0.0_f64;
        let mut bins = tuning::finest();
        self.weights.resize(widths(), Vec::new());
        for weights in &mut self.weights {
            let halves = &self.half_bins[..2 * bins];
            let fullest = halves.iter().max().copied().unwrap_or(0) as usize;
            extend(weights, MASS / bins as f64, (2 * fullest).min(at.len()));
            let weight = |pair: &[u32]| weights[(pair[0] + pair[1]) as usize];
            let even: f64 = halves.chunks_exact(2).map(weight).sum();
            let inner: f64 = halves[1..2 * bins - 1].chunks_exact(2).map(weight).sum();
            let odd = inner + weight(&[halves[0], halves[2 * bins - 1]]);
            let uniform = at.len() as f64 * (bins as f64).ln();
            best = best.max(even.max(odd) - self.totals[at.len()] + uniform);
            for i in 0..bins {
                self.half_bins[i] = self.half_bins[2 * i] + self.half_bins[2 * i + 1];
            }
            bins /= 2;
        }
        (best - (2.0 * widths() as f64).ln()).max(0.0)
    }

    fn fill(&mut self, at: &[f64], period: f64, bins: usize) {
        self.half_bins.clear();
        self.half_bins.resize(bins, 0);
        let (frequency, count) = (1.0 / period, bins as f64);
        for &time in at {
            // Times are not negative, so cutting the fraction off rounds down.
            let turns = time * frequency;
            let bin = (turns - (turns as i64) as f64) * count;
            self.half_bins[(bin as usize).min(bins - 1)] += 1;
        }
    }

    /// The releases of a grid of `period`: the first wakeup of each turn. A turn begins after the
    /// quarter of the period with the fewest wakeups; if several have as few, after the one that
    /// ends a half with the fewest.
    fn releases(&mut self, at: &[f64], period: f64) -> Vec<f64> {
        self.fill(at, period, tuning::finest());
        let before = |end: usize, bins: usize| -> u32 {
            (1..=bins)
                .map(|back| self.half_bins[(end + tuning::finest() - back) % tuning::finest()])
                .sum()
        };
        let quiet = |&end: &usize| {
            (
                before(end, tuning::finest() / 4),
                before(end, tuning::finest() / 2),
            )
        };
        let end = (0..tuning::finest()).min_by_key(quiet).unwrap_or(0);
        let begin = end as f64 / tuning::finest() as f64 * period;
        let turn = |time: f64| ((time - begin) / period).floor() as i64;
        let mut releases = at.to_vec();
        releases.dedup_by_key(|time| turn(*time));
        releases
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The logarithm of the probability of the phases, one after the other, from Pólya's urn.
    fn twin(at: &[f64], period: f64, bins: usize, place: f64) -> f64 {
        let mut counts = vec![0.0; bins];
        let mut sum = 0.0;
        for (n, time) in at.iter().enumerate() {
            let phase = (time / period + place).rem_euclid(1.0);
            let bin = (phase * bins as f64) as usize;
            let urn = (counts[bin] + MASS / bins as f64) / (n as f64 + MASS);
            sum += (urn * bins as f64).ln();
            counts[bin] += 1.0;
        }
        sum
    }

    #[test]
    fn the_evidence_is_that_of_the_urn_drawn_ball_by_ball() {
        let at: Vec<f64> = (0..60_u32)
            .map(|k| f64::from(k) * 20e6 + f64::from(k * k % 17) * 0.4e6)
            .collect();
        for period in [20e6, 40e6, 13.7e6] {
            let slow = [64, 32, 16, 8, 4]
                .iter()
                .flat_map(|&bins| [(bins, 0.0), (bins, 0.5 / bins as f64)])
                .map(|(bins, place)| twin(&at, period, bins, place))
                .fold(0.0, f64::max);
            let slow = (slow - (2.0 * widths() as f64).ln()).max(0.0);
            let fast = Fold::default().evidence(&at, period);
            assert!((slow - fast).abs() < 1e-6, "{period}: {slow} {fast}");
        }
    }

    #[test]
    fn jobs_that_wait_for_a_long_one_make_no_longer_period() {
        for count in [19, 250] {
            let late = |job: i32| if job % 4 == 1 { 11e6 } else { 0.0 };
            let at: Vec<f64> = (0..count).map(|k| f64::from(k) * 40e6 + late(k)).collect();
            let found = Fold::default()
                .fraction(&at, 160e6, 0.5e6)
                .expect("a fraction");
            assert!((found.period / 40e6 - 1.0).abs() < 1e-3, "{found:?}");
        }
    }

    #[test]
    fn a_multiple_gives_way_to_the_period_and_the_period_to_no_fraction() {
        let at: Vec<f64> = (0..50).map(|k| f64::from(k) * 20e6).collect();
        for times in 1..=5_i32 {
            let found = Fold::default().fraction(&at, 20e6 * f64::from(times), 0.5e6);
            let period = found.map_or(20e6 * f64::from(times), |line| line.period);
            assert!((period / 20e6 - 1.0).abs() < 1e-3, "{times}: {period}");
        }
    }
}
