//! The default period analyser: keeps a window of one thread's bursts and looks for its beat.

use std::collections::VecDeque;

use onbeat_model::{Burst, Instant, Rhythm, Span};

use super::search::{Found, Search};
use super::view::{Choice, Train};

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
        let mut look = Look {
            bursts,
            origin,
            enough,
            train: &mut self.train,
            search: &mut self.search,
        };
        let mut best = look.at(&Choice::All);
        if !best.is_some_and(|found| found.line_holds) {
            for choice in Choice::beside_all(bursts) {
                if let Some(found) = look.at(&choice) {
                    if best.is_none_or(|b| found.better_than(&b)) {
                        best = Some(found);
                    }
                }
            }
        }
        best.map(|Found { line, evidence, .. }| Rhythm {
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

/// One analysis: what it looks at, and with what.
struct Look<'a> {
    bursts: &'a [Burst],
    origin: u64,
    enough: f64,
    train: &'a mut Train,
    search: &'a mut Search,
}

impl Look<'_> {
    /// The beat of the chosen bursts, with groups merged on the highest level that has one.
    fn at(&mut self, choice: &Choice) -> Option<Found> {
        self.train.wakeups(self.bursts, self.origin, choice);
        let mut limits = Vec::new();
        self.train.levels(&mut limits);
        limits.truncate(MERGES);
        // Without merging, last.
        limits.push(0.0);
        let mut best: Option<Found> = None;
        for limit in limits {
            for workers in [true, false] {
                self.train.wakeups(self.bursts, self.origin, choice);
                self.train.merge(limit);
                if workers && !self.train.keep_workers() {
                    continue;
                }
                if let Some(found) = self.search.beat(self.train, self.enough) {
                    if found.line_holds {
                        return Some(found);
                    }
                    if best.is_none_or(|b| found.better_than(&b)) {
                        best = Some(found);
                    }
                }
            }
        }
        best
    }
}
