//! The default period analyser: keeps a window of one thread's bursts and looks for its beat.

use super::search::RECENT;
use super::{FALSE_ALARM_RATE, FEWEST, WINDOW_S};
use std::collections::VecDeque;

use onbeat_model::{Burst, Instant, Rhythm, Span, TaskId};

use super::compact::Compact;
use super::fit;
use super::fold::Fold;
use super::proof::Claim;
use super::search::{Found, Search};
use super::trains::Train;

/// Bursts that are kept: 24 bytes and 0.3 us an analysis for each.
const CAPACITY: usize = 1024;

/// A line through all wakeups may scatter by this much more: it has more of them.
const MORE: f64 = 1.3;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AnalyserConfig {
    /// The probability, per analysis, that a thread without any rhythm is called periodic.
    pub false_alarm_rate: f64,
    pub window: Span,
    pub capacity: usize,
}

impl Default for AnalyserConfig {
    fn default() -> Self {
        Self {
            false_alarm_rate: FALSE_ALARM_RATE,
            window: Span::from_secs(WINDOW_S),
            capacity: CAPACITY,
        }
    }
}

#[derive(Clone, Debug)]
pub struct Analyser {
    config: AnalyserConfig,
    bursts: VecDeque<Compact>,
    task: TaskId,
    last_woke: Instant,
}

impl Analyser {
    #[must_use]
    pub fn new(config: AnalyserConfig) -> Self {
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

    /// The rhythms found in the window that ends at `now`, strongest first; none if the thread is
    /// not periodic.
    ///
    /// Assumes: (1) the bursts are of one thread; (2) a rhythm holds for most of the window, or for
    /// a stretch of it that stands out: one that ended inside the window is still found, so
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
            fold: &mut Fold::default(),
        };
        let Some(first) = look.proved() else {
            return Vec::new();
        };
        let second = look.second(&first);
        let are_all = first.seen.points == Points::All;
        let mut proved: Vec<Proved> = std::iter::once(first).chain(second).collect();
        // Polls can be more regular than the work they look for, and yet are not what it is about.
        if are_all {
            let strength = |proved: &Proved| proved.seen.found.evidence.strength;
            proved.sort_by(|a, b| strength(b).total_cmp(&strength(a)));
        }
        proved.iter().map(|proved| proved.rhythm(origin)).collect()
    }

    /// The bursts of the window, oldest first, as far as [`Compact`] has them; since the last
    /// analysis, some that have left it, too.
    pub fn bursts(&self) -> impl DoubleEndedIterator<Item = Burst> + ExactSizeIterator {
        self.bursts.iter().map(|burst| burst.burst(self.task))
    }

    pub fn forget_before(&mut self, since: Instant, fewest: usize) {
        let old = self.bursts.partition_point(|burst| burst.woke() < since);
        let spare = self.bursts.len().saturating_sub(fewest);
        self.bursts.drain(..old.min(spare));
    }

    pub fn clear(&mut self) {
        self.bursts.clear();
        self.last_woke = Instant::ZERO;
    }
}

struct FoundBeat {
    found: Found,
    at: Vec<f64>,
    points: Points,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Points {
    All,
    OfWork,
    OfTimers,
}

impl FoundBeat {
    fn of(found: Found, train: &Train) -> Self {
        Self {
            found,
            at: train.at.clone(),
            points: Points::All,
        }
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

struct Proved {
    seen: FoundBeat,
    confidence: f64,
}

impl Proved {
    fn rhythm(&self, origin: u64) -> Rhythm {
        let line = self.seen.found.line;
        Rhythm {
            period: Span::from_ns(line.period.round() as u64),
            phase: Instant::from_ns(origin) + Span::from_ns(line.phase.max(0.0).round() as u64),
            jitter: Span::from_ns(line.jitter.round() as u64),
            confidence: self.confidence,
        }
    }
}

struct Look<'a> {
    bursts: &'a [Compact],
    origin: u64,
    enough: f64,
    train: &'a mut Train,
    workers: &'a mut Train,
    search: &'a mut Search,
    fold: &'a mut Fold,
}

impl<'a> Look<'a> {
    fn proved(&mut self) -> Option<Proved> {
        let seen = self.strongest()?;
        self.proof_of(seen)
    }

    /// The shortest fraction of the period found that has a proof, or the period itself; none of
    /// several ticks of the kernel if the releases are at each of these.
    fn proof_of(&mut self, mut seen: FoundBeat) -> Option<Proved> {
        if seen.points != Points::OfTimers {
            self.train.points(self.bursts, self.origin);
            let (at, found) = (&self.train.at, seen.found.line);
            if let Some(line) = self.fold.fraction(at, found.period) {
                let fraction = FoundBeat::of(Found { line, ..seen.found }, self.train);
                if self.claim(&fraction).is_a_tick() {
                    return None;
                }
                if let Some(proved) = self.proof_of(fraction) {
                    return Some(proved);
                }
            } else if seen.points == Points::All
                && let Some(line) = fit::robust_line(&found.nearest(at), &mut Vec::new())
                && line.jitter < MORE * found.jitter
                && line.has_period(found.period)
            {
                seen.found.line = line;
            }
        }
        let confidence = self.claim(&seen).confidence(self.fold)?;
        Some(Proved { seen, confidence })
    }

    fn claim<'b>(&self, seen: &'b FoundBeat) -> Claim<'b>
    where
        'a: 'b,
    {
        Claim {
            at: &seen.at,
            bursts: self.bursts,
            line: seen.found.line,
            of_work: seen.points == Points::OfWork,
            origin: self.origin,
            enough: self.enough,
        }
    }

    /// The rhythm of what `first` leaves over, if it has a proof of its own: a second timer.
    fn second(&mut self, first: &Proved) -> Option<Proved> {
        let Found {
            line,
            evidence,
            line_holds,
        } = first.seen.found;
        if !line_holds {
            return None;
        }
        let reach = evidence.reach.max(3.0 * line.jitter);
        let is_left = |burst: &&Compact| {
            let at = burst.woke().as_ns().saturating_sub(self.origin) as f64;
            line.distance(at) > reach
        };
        let rest: Vec<Compact> = self.bursts.iter().filter(is_left).copied().collect();
        if rest.len() < FEWEST {
            return None;
        }
        let mut look = Look {
            bursts: &rest[rest.len().saturating_sub(RECENT)..],
            origin: self.origin,
            enough: self.enough,
            train: self.train,
            workers: self.workers,
            search: self.search,
            fold: self.fold,
        };
        look.proved().filter(|second| {
            let second = second.seen.found;
            second.line_holds && !second.line.is_multiple_of(&line)
        })
    }

    /// The strongest beat: of timers, or of groups of bursts, if they come in groups that have one.
    fn strongest(&mut self) -> Option<FoundBeat> {
        if let Some(seen) = self.of_timers() {
            return Some(seen);
        }
        self.train.wakeups(self.bursts, self.origin);
        let mut of_groups = None;
        if let Some(limit) = self.train.groups_part_at() {
            self.train.merge(limit);
            of_groups = self.in_train();
            if of_groups.as_ref().is_some_and(|s| s.found.line_holds) {
                return of_groups;
            }
            self.train.wakeups(self.bursts, self.origin);
        }
        FoundBeat::better(of_groups, self.in_train())
    }

    /// The beat of the expiries of the thread's timers. A player sleeps until its next frame is due
    /// and then talks to its display in a hundred wakeups, or in none. One that sleeps for others
    /// longer than for its timers is not about these: a server looks after itself now and then.
    fn of_timers(&mut self) -> Option<FoundBeat> {
        let (mut for_others, mut for_timers) = (Span::ZERO, Span::ZERO);
        for pair in self.bursts.windows(2) {
            let slept = pair[1].woke().since(pair[0].blocked());
            match pair[1].expiry() {
                Some(_) => for_timers += slept,
                None => for_others += slept,
            }
        }
        if for_others == Span::ZERO || for_timers < for_others {
            return None;
        }
        self.train.timers(self.bursts, self.origin);
        if self.polls() {
            return None;
        }
        let found = self.search.beat(self.train, self.enough)?;
        Some(FoundBeat {
            points: Points::OfTimers,
            ..FoundBeat::of(found, self.train)
        })
    }

    /// True if most of the time is executed in bursts that are longer than the usual time between
    /// the points: the thread polls for its work, which comes seldom. A burst that waited as long
    /// may hold the work of several points.
    fn polls(&self) -> bool {
        let gap = Span::from_ns(self.train.median_gap() as u64);
        let (mut all, mut longer) = (Span::ZERO, Span::ZERO);
        for burst in self.bursts {
            all += burst.executed();
            if burst.executed() > gap && burst.waited() < gap {
                longer += burst.executed();
            }
        }
        longer * 2 > all
    }

    fn in_train(&mut self) -> Option<FoundBeat> {
        let mut of_work = None;
        let polls = self.polls();
        if polls {
            let gap = self.train.median_gap();
            self.workers.longer_of(self.train, gap);
        }
        if polls || self.workers.workers_of(self.train) {
            let found = self.search.beat(self.workers, self.enough);
            of_work = found.map(|found| FoundBeat {
                points: Points::OfWork,
                ..FoundBeat::of(found, self.workers)
            });
            if polls || of_work.as_ref().is_some_and(|s| s.found.line_holds) {
                return of_work;
            }
        }
        let of_all = self.search.beat(self.train, self.enough);
        FoundBeat::better(
            of_work,
            of_all.map(|found| FoundBeat::of(found, self.train)),
        )
    }
}
