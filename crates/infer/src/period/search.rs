//! The search for the beat of one train: proposes, follows, fits, judges, and picks.

use super::false_alarm::{Evidence, Judge, divergence};
use super::fit::{self, FittedLine};
use super::fold::MET;
use super::proof::HELD;
use super::trains::Train;
use super::{ALIKE, FEWEST, LAGS, LONGEST_NS, NEARLY_ALL, SHORTEST_NS};

const CANDIDATES: usize = 6;
/// Periods are followed through this many points, the last ones, which bounds the cost.
pub(super) const RECENT: usize = 256;

#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    pub(super) line: FittedLine,
    pub(super) evidence: Evidence,
    /// The beats lie on a line: a stronger claim than steps of one size.
    pub(super) line_holds: bool,
}

impl Found {
    pub(super) fn better_than(&self, other: &Self) -> bool {
        self.evidence.strength > other.evidence.strength
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct Search {
    candidates: Candidates,
    chain: Chain,
    judge: Judge,
    scratch: Vec<f64>,
    recent: Train,
}

impl Search {
    pub(super) fn beat(&mut self, train: &Train, enough: f64) -> Option<Found> {
        if train.at.len() < FEWEST {
            return None;
        }
        self.chain.each_point_a_beat(train);
        let plain = self.weigh(train, enough);
        if plain.is_some_and(|found| {
            found.line_holds
                && found.line.jitter < fit::tight() * found.line.period
                && found.evidence.met > MET
        }) {
            return plain;
        }
        let mut recent = std::mem::take(&mut self.recent);
        let found = if train.at.len() > RECENT {
            recent.last_of(train, RECENT);
            self.followed(&recent, enough)
        } else {
            self.followed(train, enough)
        };
        self.recent = recent;
        match (plain, found) {
            (Some(plain), Some(found)) if !found.better_than(&plain) => Some(plain),
            (plain, found) => found.or(plain),
        }
    }

    fn followed(&mut self, train: &Train, enough: f64) -> Option<Found> {
        let mut best: Option<Found> = None;
        self.candidates.propose(train, CANDIDATES);
        for i in 0..self.candidates.proposed.len() {
            self.chain.follow(train, self.candidates.proposed[i].0);
            if let Some(found) = self.weigh(train, enough)
                && best.is_none_or(|b| found.better_than(&b))
            {
                best = Some(found);
            }
        }
        best
    }

    /// Fits the chain and judges it; a chain that is not surer than `enough` is none.
    fn weigh(&mut self, train: &Train, enough: f64) -> Option<Found> {
        let beats = &self.chain.beats;
        let (first, last) = (beats.first()?.0, beats.last()?.0);
        let mut line = fit::robust_line(beats, &mut self.scratch)?;
        let (step, scatter) = fit::steps(beats, &mut self.scratch)?;
        if !(SHORTEST_NS..=LONGEST_NS).contains(&line.period)
            || !(SHORTEST_NS..=LONGEST_NS).contains(&step)
        {
            return None;
        }
        let ratio = fit::von_neumann(beats, &line, &mut self.scratch);
        let held = ratio > HELD + 2.0 * FEWEST as f64 / beats.len() as f64;
        let sure = |e: &Evidence| e.strength >= enough;
        let steps = self.judge.steps(train, step, beats).filter(sure);
        let tight = steps.is_some();
        let evidence = self.judge.line(train, &line, first, last);
        // The line need not prove again what the steps prove.
        let line_holds = evidence.is_some_and(|e| {
            (sure(&e) || (tight && e.strength > 0.0)) && (held || (tight && e.met > NEARLY_ALL))
        });
        let evidence = match (evidence, steps) {
            (Some(line), Some(steps)) if line_holds && steps.strength > line.strength => Evidence {
                strength: steps.strength,
                ..line
            },
            (Some(line), _) if line_holds => line,
            (_, Some(evidence)) => {
                line = FittedLine {
                    period: step,
                    phase: self.chain.beats.last()?.1 - step * last as f64,
                    jitter: scatter,
                };
                return Some(Found {
                    line,
                    evidence,
                    line_holds: false,
                });
            }
            _ => return None,
        };
        Some(Found {
            line: fit::sharpen(line, &self.chain.beats),
            evidence,
            line_holds: true,
        })
    }
}

// Periods worth following: differences between wakeups that occur far more often than by chance.
// All differences of a wakeup to the next few are counted in a histogram of equal ratios. The bins
// come from the bits of the floating-point number, whose exponent and first mantissa bits are a
// piecewise-linear logarithm, so a difference costs an addition and a shift.

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

// Follows a period through a train: the best run of points, each a whole number of periods after
// the one before, up to a tolerance. Dynamic programming over the points, as in local sequence
// alignment (Smith and Waterman, 1981): a point gains one, a beat left out and a deviation cost,
// and a run may begin and end anywhere. So wakeups between the beats do not matter, a start-up
// before the rhythm is left aside, and the period needs to be known only to the tolerance.

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
