//! The default period analyser: keeps a window of one thread's bursts and looks for its beat.

use std::collections::VecDeque;

use onbeat_model::{Burst, Instant, Rhythm, Span, TaskId};

use super::candidates::SHORTEST_NS;
use super::compact::Compact;
use super::fit::{self, Line};
use super::fold::Fold;
use super::proof::Claim;
use super::search::{Found, RECENT, Search};
use super::view::{Choice, Train};

/// Fewer bursts than this are never called periodic.
const FEWEST: usize = 6;
/// A second rhythm has at least one in so many of the bursts.
const OWN: usize = 6;
/// Evidence this strong, at least, is there for it: there are many pairs of periods.
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
    /// thread whose steps are nearly all within 5% of some mean is called periodic.
    pub fn analyse(&mut self, now: Instant) -> Vec<Rhythm> {
        self.analyse_at(now, self.config.false_alarm_rate)
    }

    /// The same with another false-alarm rate.
    pub fn analyse_at(&mut self, now: Instant, false_alarm_rate: f64) -> Vec<Rhythm> {
        self.forget(now);
        if self.bursts.len() < FEWEST {
            return Vec::new();
        }
        let bursts: &[Compact] = self.bursts.make_contiguous();
        let origin = bursts[0].woke().as_ns();
        let enough = -false_alarm_rate.clamp(1e-300, 1.0).ln();
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
        let mut fold = Fold::default();
        let first = look.over_all_wakeups(first, &mut fold);
        let claim = Claim {
            at: &first.at,
            bursts,
            line: first.found.line,
            of_work: first.of_work,
            origin,
            enough,
        };
        let Some(proofs) = claim.proofs(&mut fold) else {
            return Vec::new();
        };
        let Seen {
            found: first,
            of_work,
            ..
        } = first;
        let second = look.second(&first);
        let rhythm = |Found { line, evidence, .. }: Found| Rhythm {
            period: Span::from_ns(line.period.round() as u64),
            phase: Instant::from_ns(origin) + Span::from_ns(line.phase.max(0.0).round() as u64),
            jitter: Span::from_ns(line.jitter.round() as u64),
            confidence: proofs.right().min(1.0 - (-evidence.strength).exp()),
        };
        let mut found: Vec<Found> = std::iter::once(first).chain(second).collect();
        // Polls can be more regular than the work they look for, and yet are not what it is about.
        if !of_work {
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

/// A beat, and the points in which it was found.
struct Seen {
    found: Found,
    at: Vec<f64>,
    /// They are those that carry the work.
    of_work: bool,
}

impl Seen {
    fn of(found: Found, train: &Train) -> Self {
        Self {
            found,
            at: train.at.clone(),
            of_work: false,
        }
    }

    /// The same beat along another line.
    fn along(mut self, line: Line) -> Self {
        self.found.line = line;
        self
    }

    /// The better of two. The second counts as better where its line holds: the first was looked
    /// at by itself.
    fn better(first: Option<Self>, second: Option<Self>) -> Option<Self> {
        match (first, second) {
            (Some(first), Some(second))
                if !second.found.line_holds && !second.found.better_than(&first.found) =>
            {
                Some(first)
            }
            (first, second) => second.or(first),
        }
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
    fn strongest(&mut self) -> Option<Seen> {
        let best = self.at(&Choice::All);
        if best.as_ref().is_some_and(|s| s.found.line_holds) {
            return best;
        }
        let choices = Choice::beside_all(self.bursts);
        let beside = choices.iter().filter_map(|choice| self.at(choice));
        best.into_iter().chain(beside).reduce(|best, found| {
            if found.found.better_than(&best.found) {
                found
            } else {
                best
            }
        })
    }

    /// What was found, along the line nearest to all wakeups; or the fraction of its period in
    /// which these keep their phase better.
    fn over_all_wakeups(&mut self, seen: Seen, fold: &mut Fold) -> Seen {
        self.train.wakeups(self.bursts, self.origin, &Choice::All);
        let at = &self.train.at;
        let found = seen.found.line;
        if let Some(line) = fold.fraction(at, found.period, SHORTEST_NS) {
            return Seen::of(seen.found, self.train).along(line);
        }
        if !seen.of_work
            && let Some(line) = fit::robust_line(&found.nearest(at), &mut Vec::new())
            && line.jitter < found.jitter
            && line.has_period(found.period)
        {
            return seen.along(line);
        }
        seen
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
            bursts: &rest[rest.len().saturating_sub(RECENT)..],
            origin: self.origin,
            enough: self.enough,
            train: self.train,
            workers: self.workers,
            search: self.search,
        };
        look.at(&Choice::All)
            .map(|seen| seen.found)
            .filter(|second| {
                second.line_holds
                    && second.evidence.strength > CERTAIN
                    && !second.line.resonates(&first.line)
            })
    }

    /// The beat of the chosen bursts: of their groups, if they come in groups that have one.
    fn at(&mut self, choice: &Choice) -> Option<Seen> {
        self.train.wakeups(self.bursts, self.origin, choice);
        let mut of_groups = None;
        if let Some(limit) = self.train.groups_part_at() {
            self.train.merge(limit);
            of_groups = self.in_train();
            if of_groups.as_ref().is_some_and(|s| s.found.line_holds) {
                return of_groups;
            }
            self.train.wakeups(self.bursts, self.origin, choice);
        }
        Seen::better(of_groups, self.in_train())
    }

    /// The beat of the points that carry the work, or of all.
    fn in_train(&mut self) -> Option<Seen> {
        let mut of_work = None;
        if self.workers.workers_of(self.train) {
            let found = self.search.beat(self.workers, self.enough);
            of_work = found.map(|found| Seen {
                of_work: true,
                ..Seen::of(found, self.workers)
            });
            if of_work.as_ref().is_some_and(|s| s.found.line_holds) {
                return of_work;
            }
        }
        let of_all = self.search.beat(self.train, self.enough);
        Seen::better(of_work, of_all.map(|found| Seen::of(found, self.train)))
    }
}
