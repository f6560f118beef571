//! The default period analyser: keeps a window of one thread's bursts and looks for its beat.

use std::collections::VecDeque;

use onbeat_model::{Burst, Instant, Rhythm, Span};

use super::search::{Found, Search};
use super::view::Train;

/// Fewer bursts than this are never called periodic.
const FEWEST: usize = 6;
/// Groups of bursts are looked for on so many levels.
const MERGES: usize = 2;

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
    train: Train,
    search: Search,
    limits: Vec<f64>,
}

impl Analyser {
    /// One that has heard nothing yet.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self {
            config,
            bursts: VecDeque::new(),
            train: Train::default(),
            search: Search::default(),
            limits: Vec::new(),
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
        let enough = -self.config.false_alarm_rate.clamp(1e-300, 1.0).ln();
        let (train, search) = (&mut self.train, &mut self.search);
        train.wakeups(bursts, origin);
        train.levels(&mut self.limits);
        self.limits.truncate(MERGES);
        // Without merging, last.
        self.limits.push(0.0);
        self.limits
            .iter()
            .find_map(|&limit| {
                train.wakeups(bursts, origin);
                train.merge(limit);
                if train.keep_workers() {
                    if let Some(found) = search.beat(train, enough) {
                        return Some(found);
                    }
                    train.wakeups(bursts, origin);
                    train.merge(limit);
                }
                search.beat(train, enough)
            })
            .map(|Found { line, evidence, .. }| Rhythm {
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
