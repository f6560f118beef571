//! The default period analyser: keeps a window of one thread's bursts and looks for its beat.

use std::collections::VecDeque;

use onbeat_model::{Burst, Instant, Rhythm, Span, TaskId};

use super::candidates::SHORTEST_NS;
use super::compact::Compact;
use super::fit;
use super::fold::Fold;
use super::search::{AGREE, Found, LOOSE, Search};
use super::view::{Choice, Train};

/// Fewer bursts than this are never called periodic.
const FEWEST: usize = 6;
/// Groups of bursts are looked for on so many levels.
const MERGES: usize = 2;
/// A second rhythm has at least one in so many of the bursts.
const OWN: usize = 6;
/// It is looked for among so many of the last that the first leaves over.
const REST: usize = 256;
/// Evidence this strong for a rhythm in all bursts ends the search: it is past any doubt.
const CERTAIN: f64 = 20.0;

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
    bursts: VecDeque<Compact>,
    task: TaskId,
    last_woke: Instant,
}

impl Analyser {
    /// One that has heard nothing yet.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self {
            config,
            bursts: VecDeque::new(),
            task: TaskId::recorded(0),
            last_woke: Instant::ZERO,
        }
    }

    /// Takes in one more burst of the thread; bursts come in the order of their wakeups, one that
    /// does not is left aside.
    pub fn hear(&mut self, burst: &Burst) {
        if burst.woke < self.last_woke {
            return;
        }
        self.last_woke = burst.woke;
        if self.bursts.len() >= self.config.capacity {
            self.bursts.pop_front();
        }
        // Not at each burst: the oldest has long left the processor's caches.
        if self.bursts.len() == self.bursts.capacity() {
            self.forget(burst.woke);
        }
        self.task = burst.task;
        self.bursts.push_back(Compact::of(burst));
    }

    fn forget(&mut self, now: Instant) {
        while self
            .bursts
            .front()
            .is_some_and(|b| now.since(b.woke()) > self.config.window)
        {
            self.bursts.pop_front();
        }
    }

    /// The rhythms heard in the window that ends at `now`, strongest first; none if the thread is
    /// not periodic.
    ///
    /// Assumes: (1) the bursts are of one thread; (2) a rhythm holds for most of the window, or for
    /// a stretch of it that stands out: one that ended inside the window is still told, so
    /// [`clear`](Self::clear) when a rhythm is known to be over; (3) a thread without rhythm sleeps
    /// independently of how it slept before. Its false-alarm rate is then at most the one stated; a
    /// thread that sleeps within a fifth of some mean may be called periodic more often than that.
    pub fn analyse(&mut self, now: Instant) -> Vec<Rhythm> {
        self.forget(now);
        if self.bursts.len() < FEWEST {
            return Vec::new();
        }
        let bursts: &[Compact] = self.bursts.make_contiguous();
        let origin = bursts[0].woke().as_ns();
        let enough = -self.config.false_alarm_rate.clamp(1e-300, 1.0).ln();
        // Not kept between analyses: there are few of them, and the memory of one counts for each
        // thread.
        let (mut train, mut workers, mut search) =
            (Train::default(), Train::default(), Search::default());
        let mut look = Look {
            bursts,
            origin,
            enough,
            train: &mut train,
            workers: &mut workers,
            search: &mut search,
        };
        let Some(first) = look.strongest() else {
            return Vec::new();
        };
        let first = look.over_all_wakeups(first);
        let second = look.second(&first);
        let rhythm = |Found { line, evidence, .. }: Found| Rhythm {
            period: Span::from_ns(line.period.round() as u64),
            phase: Instant::from_ns(origin) + Span::from_ns(line.phase.max(0.0).round() as u64),
            jitter: Span::from_ns(line.jitter.round() as u64),
            confidence: 1.0 - (-evidence.strength).exp(),
        };
        let mut found: Vec<Found> = std::iter::once(first).chain(second).collect();
        // Polls can be more regular than the work they look for, and yet are not what it is about.
        if !first.of_workers {
            found.sort_by(|a, b| b.evidence.strength.total_cmp(&a.evidence.strength));
        }
        found.into_iter().map(rhythm).collect()
    }

    /// The bursts of the window, oldest first; since the last analysis, some that have left it,
    /// too. How often they were preempted is not kept, and of what took longer than a second, no
    /// nanoseconds.
    pub fn bursts(&self) -> impl DoubleEndedIterator<Item = Burst> + ExactSizeIterator {
        self.bursts.iter().map(|burst| burst.burst(self.task))
    }

    /// Forgets the bursts before `since`, but for the last `fewest`.
    pub fn forget_before(&mut self, since: Instant, fewest: usize) {
        let old = self.bursts.partition_point(|burst| burst.woke() < since);
        let spare = self.bursts.len().saturating_sub(fewest);
        self.bursts.drain(..old.min(spare));
    }

    /// Forgets every burst.
    pub fn clear(&mut self) {
        self.bursts.clear();
        self.last_woke = Instant::ZERO;
    }
}

/// One analysis: what it looks at, and with what.
struct Look<'a> {
    bursts: &'a [Compact],
    origin: u64,
    enough: f64,
    train: &'a mut Train,
    workers: &'a mut Train,
    search: &'a mut Search,
}

impl Look<'_> {
    /// The strongest rhythm of the bursts.
    fn strongest(&mut self) -> Option<Found> {
        let best = self.at(&Choice::All);
        if best.is_some_and(|found| found.line_holds || found.evidence.strength > CERTAIN) {
            return best;
        }
        let choices = Choice::beside_all(self.bursts);
        let beside = choices.iter().filter_map(|choice| self.at(choice));
        best.into_iter().chain(beside).reduce(|best, found| {
            if found.better_than(&best) {
                found
            } else {
                best
            }
        })
    }

    /// `found`, or the fraction of its period in which all wakeups keep their phase far better than
    /// in it.
    fn over_all_wakeups(&mut self, found: Found) -> Found {
        self.train.wakeups(self.bursts, self.origin, &Choice::All);
        let at = &self.train.at;
        let mut fold = Fold::default();
        let Some(best) = fold.fraction(at, found.line.period, SHORTEST_NS) else {
            return found;
        };
        let own = fold.at(at, found.line.period);
        let parts = found.line.period / best.period;
        if parts < 1.5
            || (parts / parts.round() - 1.0).abs() > AGREE
            || best.evidence < own.evidence + self.enough
        {
            return found;
        }
        let mut beats = Vec::new();
        fold.releases(at, best.period, &mut beats);
        match fit::robust_line(&beats, &mut Vec::new()) {
            Some(line)
                if line.jitter < LOOSE * line.period
                    && (line.period / best.period - 1.0).abs() < AGREE =>
            {
                found.along(line)
            }
            _ => found,
        }
    }

    /// The rhythm of what `first` leaves over, if it is one of its own: a second timer.
    fn second(&mut self, first: &Found) -> Option<Found> {
        if !first.line_holds {
            return None;
        }
        let reach = first.evidence.reach.max(first.line.jitter * 3.0);
        let rest: Vec<Compact> = self
            .bursts
            .iter()
            .filter(|b| {
                let at = b.woke().as_ns().saturating_sub(self.origin) as f64;
                first.line.distance(at) > reach
            })
            .copied()
            .collect();
        if rest.len() < FEWEST || rest.len() * OWN < self.bursts.len() {
            return None;
        }
        let mut look = Look {
            bursts: &rest[rest.len().saturating_sub(REST)..],
            origin: self.origin,
            enough: self.enough,
            train: self.train,
            workers: self.workers,
            search: self.search,
        };
        look.at(&Choice::All).filter(|second| {
            second.line_holds
                && second.evidence.strength > CERTAIN
                && !second.line.resonates(&first.line)
        })
    }

    /// The beat of the chosen bursts, with groups merged on the highest level that has one.
    fn at(&mut self, choice: &Choice) -> Option<Found> {
        self.train.wakeups(self.bursts, self.origin, choice);
        let mut limits = Vec::new();
        self.train.levels(&mut limits);
        limits.truncate(MERGES);
        let mut best: Option<Found> = None;
        for level in 0..=limits.len() {
            if let Some(&limit) = limits.get(level) {
                self.train.merge(limit);
            }
            let worked = self.workers.workers_of(self.train);
            let trains = worked.then_some(&*self.workers).into_iter();
            for (train, of_workers) in trains.map(|t| (t, true)).chain([(&*self.train, false)]) {
                let Some(mut found) = self.search.beat(train, self.enough) else {
                    continue;
                };
                found.of_workers = of_workers;
                if found.line_holds {
                    return Some(found);
                }
                if best.is_none_or(|b| found.better_than(&b)) {
                    best = Some(found);
                }
            }
            if level < limits.len() {
                // The next level is finer; the last is that of single bursts.
                self.train.wakeups(self.bursts, self.origin, choice);
            }
        }
        best
    }
}
