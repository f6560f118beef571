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
//!
//! A thread of a pool may serve every other beat, now the even and now the odd ones. Twice the
//! period has more evidence while it serves the same ones, but a reservation must be there at both:
//! that is not held against the shorter one, where both take their turn.

use super::false_alarm::divergence;
use super::fit::{self, FittedLine};
use super::{COARSEST, FAR, LAGS, NEARLY_ALL, SAME, SHORTEST_NS};

/// The weight of the prior of a histogram in wakeups: one peak is expected (Perks, 1947).
const MASS: f64 = 1.0;
/// A period has releases at this share of its beats. A half of it would meet half of them, and some
/// by chance.
pub(super) const MET: f64 = 0.7;

/// The bins of the finest histogram of phases, a power of two: narrower ones would tell phases
/// apart in periods that are the same.
pub(super) fn finest() -> usize {
    ((1.0 / SAME) as usize + 1).next_power_of_two() / 2
}

/// How many widths are tried, each at two places of its bins.
fn widths() -> usize {
    (finest() / COARSEST).ilog2() as usize + 1
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
    /// The fraction of `period`, in nanoseconds, that has as much evidence among the wakeups `at`,
    /// as the line through its releases; none if none has most of its beats met. Half of the
    /// period need not tell whether a release is at an even or an odd beat.
    pub(super) fn fraction(&mut self, at: &[f64], period: f64) -> Option<FittedLine> {
        let mut most = self.evidence(at, period).left;
        let mut best = None;
        for parts in 2..=LAGS {
            let tried = period / parts as f64;
            if tried < SHORTEST_NS {
                break;
            }
            let evidence = self.evidence(at, tried).left;
            if evidence > 0.0
                && let Some((line, even)) = self.line(at, tried, parts == 2)
                && evidence + divergence(at.len() as f64, even * at.len() as f64, 0.5)
                    > NEARLY_ALL * most
            {
                (most, best) = (evidence, Some(line));
            }
        }
        best
    }

    /// The line through the releases of a grid of `period`, if most of its beats are met, and the
    /// share of these that are even, or odd if those are more. Of `half` a period, half of the
    /// beats are enough if some of the others take their turn: not between two of them. Its
    /// releases may scatter by as much of it as those of the whole period.
    fn line(&mut self, at: &[f64], period: f64, half: bool) -> Option<(FittedLine, f64)> {
        let bins = 2 * finest();
        self.fill(at, period, bins);
        let both = |i: usize| self.half_bins[i] + self.half_bins[(i + 1) % bins];
        let crest = (0..bins).max_by_key(|&bin| both(bin)).unwrap_or(0) + 1;
        let crowded = FittedLine {
            period,
            phase: period * (crest as f64 / bins as f64),
            jitter: 0.0,
        };
        let releases = crowded.nearest(at);
        let line = fit::without_far_points(crowded, &releases, &mut Vec::new())?;
        let reach = (FAR * line.jitter).max(period / finest() as f64);
        let is_met = |release: &&(i64, f64)| line.late(**release).abs() <= reach;
        let met: Vec<i64> = releases.iter().filter(is_met).map(|r| r.0).collect();
        let odd = met.iter().filter(|&beat| beat & 1 == 1).count();
        let few = odd.min(met.len() - odd);
        let is_few = |beat: i64| (beat & 1 == 1) == (odd == few);
        let is_between = |w: &&[i64]| w[2] - w[0] == 2 && is_few(w[1]);
        let in_turn = few - met.windows(3).filter(is_between).count();
        let turns = (at[at.len() - 1] - at[0]) / period;
        let all = met.len() as f64;
        let serves_both =
            all >= 0.5 * NEARLY_ALL * turns && in_turn as f64 > (1.0 - NEARLY_ALL) * all;
        let most_met = all >= MET * turns && line.jitter < fit::tight() * period;
        (line.has_period(period) && (most_met || half && serves_both && line.is_tight()))
            .then_some((line, 1.0 - few as f64 / all))
    }

    /// The evidence of the best width and place of the bins. As many periods can be told apart as
    /// the bins are narrow, so a grid of narrow ones is one of more.
    pub(super) fn evidence(&mut self, at: &[f64], period: f64) -> Factor {
        self.fill(at, period, 2 * finest());
        let all = ln_gamma(MASS + at.len() as f64) - ln_gamma(MASS);
        let (mut best, mut most) = (0.0_f64, 0.0_f64);
        let mut bins = finest();
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

    /// The twin counts the jobs, whose beats are known here, instead of finding these.
    #[test]
    fn half_a_period_is_taken_where_jobs_at_even_and_at_odd_beats_are_not_few() {
        let (mut x, mut halves) = (7_u64, 0);
        for slips in 0..60 {
            let mut random = |below: u64| {
                x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (x >> 33) % below
            };
            let mut beat = 0;
            let mut beats = vec![beat];
            for _ in 1..50 {
                beat += match random(600) {
                    slip if slip >= slips => 2,
                    slip => 1 + 2 * (slip & 1),
                };
                beats.push(beat);
            }
            let alike = |parity: u64| beats.iter().filter(move |&beat| beat & 1 == parity);
            let fewer = u64::from(alike(1).count() <= 25);
            let is_alone =
                |beat: &&u64| beats.iter().filter(|b| b.abs_diff(**beat) == 1).count() < 2;
            let in_turn = alike(fewer).filter(is_alone).count();
            let expected = in_turn >= 5 && 50.0 >= 0.45 * beat as f64;
            let late = |beat: u64| (beat * beat % 17) as f64 * 0.01e6;
            let at: Vec<f64> = beats.iter().map(|&b| b as f64 * 20e6 + late(b)).collect();
            let half = Fold::default().fraction(&at, 40e6);
            assert_eq!(half.is_some(), expected, "{slips}: {in_turn} in {beat}");
            assert!(half.is_none_or(|line| (line.period / 20e6 - 1.0).abs() < 1e-3));
            halves += usize::from(expected);
        }
        assert!((15..45).contains(&halves), "{halves}");
    }

    #[test]
    fn wakeups_between_beats_that_are_all_met_make_no_half_nor_third() {
        let every = |ms: u32| (0..2_000).filter(move |at| at % ms == 0);
        let mut at: Vec<f64> = every(30)
            .chain(every(70))
            .map(|at| f64::from(at) * 1e6)
            .collect();
        at.sort_unstable_by(f64::total_cmp);
        assert_eq!(Fold::default().fraction(&at, 30e6), None);
    }
}
