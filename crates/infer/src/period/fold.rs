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

use super::fit::{self, FittedLine};
use crate::tuning::{self, MASS};

/// How many widths are tried, each at two places of its bins.
fn widths() -> usize {
    (tuning::finest() / tuning::COARSEST).ilog2() as usize + 1
}

/// The logarithm of the Bayes factor for a grid.
#[derive(Clone, Copy, Debug)]
pub(super) struct Factor {
    /// That of the best bins, after their choice is paid for.
    pub(super) left: f64,
    /// That of the best bins.
    pub(super) most: f64,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Fold {
    half_bins: Vec<u32>,
}

/// The logarithm of the gamma function, by Stirling's series from 8 on.
fn ln_gamma(mut x: f64) -> f64 {
    let mut below = 1.0;
    while x < 8.0 {
        below *= x;
        x += 1.0;
    }
    let (inverse, square) = (1.0 / x, 1.0 / (x * x));
    let series = inverse * (1.0 / 12.0 - square * (1.0 / 360.0 - square / 1260.0));
    (x - 0.5) * x.ln() - x + 0.5 * std::f64::consts::TAU.ln() + series - below.ln()
}

impl Fold {
    /// The fraction of `period`, not shorter than `shortest` (both in nanoseconds), that has more
    /// evidence than it, as the line through its releases; none if no line has most of its beats
    /// met. `at` are the wakeups, ascending, at least two.
    pub(super) fn fraction(
        &mut self,
        at: &[f64],
        period: f64,
        shortest: f64,
    ) -> Option<FittedLine> {
        let mut most = self.evidence(at, period).left;
        let mut best = None;
        for parts in 2..=tuning::LAGS {
            let tried = period / parts as f64;
            if tried < shortest {
                break;
            }
            let evidence = self.evidence(at, tried).left;
            if evidence > most
                && let Some(line) = self.line(at, tried)
            {
                (most, best) = (evidence, Some(line));
            }
        }
        best
    }

    /// The line through the releases of a grid of `period`, if most of its beats are met.
    fn line(&mut self, at: &[f64], period: f64) -> Option<FittedLine> {
        let times = self.releases(at, period);
        let bins = 2 * tuning::finest();
        self.fill(&times, period, bins);
        let both = |i: usize| self.half_bins[i] + self.half_bins[(i + 1) % bins];
        let crest = (0..bins).max_by_key(|&bin| both(bin)).unwrap_or(0) + 1;
        let crowded = FittedLine {
            period,
            phase: period * (crest as f64 / bins as f64),
            jitter: 0.0,
        };
        let releases = crowded.nearest(&times);
        let line = fit::without_far_points(crowded, &releases, &mut Vec::new())?;
        let reach = (tuning::FAR * line.jitter).max(period / tuning::finest() as f64);
        let met = releases
            .iter()
            .filter(|&&release| line.late(release).abs() <= reach);
        let turns = (at[at.len() - 1] - at[0]) / period;
        (line.jitter < tuning::tight() * period
            && line.has_period(period)
            && met.count() as f64 >= tuning::MET * turns)
            .then_some(line)
    }

    /// The evidence of the best width and place of the bins. As many periods can be told apart as
    /// the bins are narrow, so a grid of narrow ones is one of more.
    pub(super) fn evidence(&mut self, at: &[f64], period: f64) -> Factor {
        self.fill(at, period, 2 * tuning::finest());
        let all = ln_gamma(MASS + at.len() as f64) - ln_gamma(MASS);
        let (mut best, mut most) = (0.0_f64, 0.0_f64);
        let mut bins = tuning::finest();
        for _ in 0..widths() {
            let halves = &self.half_bins[..2 * bins];
            let prior = MASS / bins as f64;
            let empty = ln_gamma(prior);
            let weight = |pair: &[u32]| match pair[0] + pair[1] {
                0 => 0.0,
                count => ln_gamma(prior + f64::from(count)) - empty,
            };
            let even: f64 = halves.chunks_exact(2).map(weight).sum();
            let inner: f64 = halves[1..2 * bins - 1].chunks_exact(2).map(weight).sum();
            let odd = inner + weight(&[halves[0], halves[2 * bins - 1]]);
            let uniform = at.len() as f64 * (bins as f64).ln();
            let factor = even.max(odd) - all + uniform;
            most = most.max(factor);
            best = best.max(factor - (bins as f64).ln());
            for i in 0..bins {
                self.half_bins[i] = self.half_bins[2 * i] + self.half_bins[2 * i + 1];
            }
            bins /= 2;
        }
        Factor {
            left: (best - (2.0 * widths() as f64).ln()).max(0.0),
            most,
        }
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

    /// The logarithm of the probability of the phases, one after the other, from Pólya's urn, less
    /// what the width of the bins costs.
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
        sum - (bins as f64).ln()
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
            let fast = Fold::default().evidence(&at, period).left;
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
