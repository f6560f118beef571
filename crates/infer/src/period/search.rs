//! The search for the beat of one train: proposes, follows, fits, judges, and picks.

use super::band;
use super::candidates::{Candidates, LONGEST_NS, SHORTEST_NS};
use super::chain::Chain;
use super::evidence::{Evidence, Judge};
use super::fit::{self, Line};
use super::view::Train;

/// How many periods are followed.
const CANDIDATES: usize = 6;
/// Periods are followed through so many points, the last ones: enough to tell, and what it costs to
/// find nothing is bounded.
pub(super) const RECENT: usize = 256;
/// Points held to a line have steps whose mean square is twice the variance around it
/// (von Neumann's ratio), give or take; that of a random walk falls with its length. The limit is
/// `HELD + HELD_FEW / n`: below it are 5% of held trains of 30 points, above it 1% of walks.
const HELD: f64 = 1.2;
const HELD_FEW: f64 = 12.0;
/// A line that meets more than this share of its beats holds even if lateness adds up for a while:
/// a thread that polls for its releases comes later and later, until it comes a poll earlier.
const WHOLE: f64 = 0.9;
/// Beats of which this share is met are all beats.
const MOST: f64 = 0.7;

/// A beat found in a train.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    pub(super) line: Line,
    pub(super) evidence: Evidence,
    /// The share of the train that the beats span.
    share: f64,
    /// The beats lie on a line: a stronger claim than steps of one size.
    pub(super) line_holds: bool,
}

impl Found {
    /// Its beats are every so many-th of the other's, which are surely beats as well.
    fn contains(&self, other: &Self) -> bool {
        let times = (self.line.period / other.line.period).round();
        times > 1.5
            && (self.line.period / other.line.period / times - 1.0).abs() < 0.01
            && other.share > MOST
            && other.evidence.met > MOST
            && other.evidence.strength > self.evidence.strength / times
    }

    pub(super) fn better_than(&self, other: &Self) -> bool {
        !self.contains(other)
            && (other.contains(self) || self.evidence.strength > other.evidence.strength)
    }
}

/// The memory of the search, kept between searches.
#[derive(Clone, Debug, Default)]
pub(super) struct Search {
    candidates: Candidates,
    chain: Chain,
    judge: Judge,
    scratch: Vec<f64>,
    recent: Train,
}

impl Search {
    /// The beat of `train` that is surer than `enough`, if there is one.
    pub(super) fn beat(&mut self, train: &Train, enough: f64) -> Option<Found> {
        if train.at.len() < 5 {
            return None;
        }
        self.chain.each_point_a_beat(train);
        let plain = self.weigh(train, enough);
        if plain.is_some_and(|found| found.line_holds && found.evidence.met > MOST) {
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

    /// The best of the candidates followed through `train`.
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
        let share = ((last - first) as f64 * step / train.length()).min(1.0);
        let ratio = fit::von_neumann(beats, &line, &mut self.scratch);
        let held = ratio > HELD + HELD_FEW / beats.len() as f64;
        let sure = |e: &Evidence| e.strength >= enough;
        let steps = self.judge.steps(train, step, beats).filter(sure);
        let tight = steps.is_some();
        let agree = line.has_period(step);
        let evidence = if line.is_tight() {
            self.judge.line(train, &line, first, last)
        } else {
            None
        };
        // What the steps prove, the line need not prove again.
        let line_holds = evidence.is_some_and(|e| {
            (sure(&e) || (tight && e.strength > 0.0))
                && (held || (tight && (e.met > WHOLE || agree)))
        });
        let evidence = match (evidence, steps) {
            (Some(line), Some(steps)) if line_holds && steps.strength > line.strength => Evidence {
                strength: steps.strength,
                ..line
            },
            (Some(line), _) if line_holds => line,
            (_, Some(evidence)) => {
                line = Line {
                    period: step,
                    phase: self.chain.beats.last()?.1 - step * last as f64,
                    jitter: scatter,
                };
                return Some(Found {
                    line,
                    evidence,
                    share,
                    line_holds: false,
                });
            }
            _ => return None,
        };
        Some(Found {
            line: band::sharpen(line, &self.chain.beats),
            evidence,
            share,
            line_holds: true,
        })
    }
}
