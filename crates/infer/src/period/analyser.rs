//! The default period analyser: keeps a window of one thread's bursts and looks for its beat.

use std::collections::VecDeque;

use onbeat_model::{Burst, Instant, Rhythm, Span};

use super::candidates::Candidates;
use super::chain::Chain;
use super::evidence::{Evidence, Judge};
use super::fit::{self, Line};
use super::view::{self, Train};

/// Fewer bursts than this are never called periodic.
const FEWEST: usize = 6;

/// What an [`Analyser`] keeps and how sure it must be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Config {
    /// The probability, per analysis, that a thread without any rhythm is called periodic.
    pub false_alarm_rate: f64,
    /// How far back bursts are kept.
    pub window: Span,
    /// How many bursts are kept at most.
    pub capacity: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            false_alarm_rate: 0.01,
            window: Span::from_secs(10),
            capacity: 1024,
        }
    }
}

/// Finds the rhythm of one thread.
#[derive(Clone, Debug)]
pub struct Analyser {
    config: Config,
    bursts: VecDeque<Burst>,
    scratch: Scratch,
}

#[derive(Clone, Debug, Default)]
struct Scratch {
    train: Train,
    candidates: Candidates,
    chain: Chain,
    judge: Judge,
}

impl Analyser {
    /// One that has heard nothing yet.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self {
            config,
            bursts: VecDeque::new(),
            scratch: Scratch::default(),
        }
    }

    /// Takes in one more burst of the thread; bursts come in the order of their wakeups, one that
    /// does not is left aside.
    pub fn hear(&mut self, burst: &Burst) {
        if self
            .bursts
            .back()
            .is_some_and(|last| burst.woke < last.woke)
        {
            return;
        }
        self.bursts.push_back(*burst);
        if self.bursts.len() > self.config.capacity {
            self.bursts.pop_front();
        }
        self.forget(burst.woke);
    }

    fn forget(&mut self, now: Instant) {
        while self
            .bursts
            .front()
            .is_some_and(|b| now.since(b.woke) > self.config.window)
        {
            self.bursts.pop_front();
        }
    }

    /// The rhythms heard in the window that ends at `now`, strongest first; none if the thread is
    /// not periodic.
    pub fn analyse(&mut self, now: Instant) -> Vec<Rhythm> {
        self.forget(now);
        if self.bursts.len() < FEWEST {
            return Vec::new();
        }
        let bursts: &[Burst] = self.bursts.make_contiguous();
        let origin = bursts[0].woke.as_ns();
        let Scratch {
            train,
            candidates,
            chain,
            judge,
        } = &mut self.scratch;
        let enough = -self.config.false_alarm_rate.clamp(1e-300, 1.0).ln();
        let mut found = None;
        if view::workers(bursts, origin, train) && train.at.len() >= 5 {
            found = strongest(train, candidates, chain, judge)
                .filter(|(_, evidence)| evidence.strength >= enough);
        }
        if found.is_none() {
            view::releases(bursts, origin, train);
            found = strongest(train, candidates, chain, judge)
                .filter(|(_, evidence)| evidence.strength >= enough);
        }
        found
            .map(|(line, evidence)| Rhythm {
                period: Span::from_ns(line.period.round() as u64),
                phase: Instant::from_ns(origin + line.phase.max(0.0).round() as u64),
                jitter: Span::from_ns(line.jitter.round() as u64),
                confidence: 1.0 - (-evidence.strength).exp(),
            })
            .into_iter()
            .collect()
    }

    /// The bursts of the window, oldest first.
    pub fn bursts(&self) -> impl Iterator<Item = &Burst> {
        self.bursts.iter()
    }

    /// Forgets every burst.
    pub fn clear(&mut self) {
        self.bursts.clear();
    }
}

/// The line through `train` with the strongest evidence.
fn strongest(
    train: &Train,
    candidates: &mut Candidates,
    chain: &mut Chain,
    judge: &mut Judge,
) -> Option<(Line, Evidence)> {
    let mut best: Option<(Line, Evidence)> = None;
    for &(period, _) in candidates.of(train, 6) {
        chain.follow(train, period);
        let Some(line) = fit::line(&chain.beats) else {
            continue;
        };
        let Some(found) = refine(train, &chain.beats, line, judge) else {
            continue;
        };
        if best.is_none_or(|b| found.1.strength > b.1.strength) {
            best = Some(found);
        }
    }
    best
}

/// Fits the line again to the points it leads to, and judges it.
fn refine(
    train: &Train,
    beats: &[(i64, f64)],
    mut line: Line,
    judge: &mut Judge,
) -> Option<(Line, Evidence)> {
    let (mut first, mut last) = (beats.first()?.0, beats.last()?.0);
    let mut evidence = judge.judge(train, &line, first, last)?;
    for _ in 0..2 {
        let met: Vec<(i64, f64)> = judge
            .nearest
            .iter()
            .copied()
            .filter(|&(beat, at)| (at - line.time(beat)).abs() <= evidence.reach)
            .collect();
        first = met.first()?.0;
        last = met.last()?.0;
        line = fit::line(&met)?;
        evidence = judge.judge(train, &line, first, last)?;
    }
    Some((line, evidence))
}
