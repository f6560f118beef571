//! The search for the beat of one train: proposes, follows, fits, judges, and picks.

use super::band;
use super::candidates::Candidates;
use super::chain::Chain;
use super::false_alarm::{Evidence, Judge};
use super::fit::{self, FittedLine};
use super::fold::MET;
use super::proof::HELD;
use super::trains::Train;
use super::{FEWEST, LONGEST_NS, NEARLY_ALL, SHORTEST_NS};

/// Periods that are followed. Raised: a longer search.
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
    /// The beat of `train` that is surer than `enough`, if there is one.
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
            line: band::sharpen(line, &self.chain.beats),
            evidence,
            line_holds: true,
        })
    }
}
