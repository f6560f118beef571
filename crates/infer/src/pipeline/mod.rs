//! Pipelines: which threads stand on the path of a periodic thread's jobs, found from the wakeups
//! between threads.
//!
//! A player wakes the display server with each frame, and a sound server wakes the player for each
//! buffer. The beat tells such a partner from a logger or a bus daemon that the player also talks
//! to: the two have to do with each other in every job, or in every second, third or fourth one.
//!
//! # The rule
//! Let `P` be the period of the whole, and the *contacts* the times at which the partner wakes a
//! thread of the path, or is woken by one. A contact that comes `g` after the one before leaves
//! `round(g / P) - 1` jobs out; so it counts jobs and not contacts, needs no border between one job
//! and the next, and forgives a jitter of up to `P/2`. The partner stands on the path if it is sure
//! that it has to do with more than half of the jobs, and it does have to do with nine in ten. The
//! same with `2P`, `3P` and `4P` in the place of `P`: a thread that works for each second job; but
//! then it must not often be seen sooner than that, as one is that comes and goes at no rhythm.
//!
//! # Confidence
//! One minus the probability that a thread which has to do with each job with probability one half
//! only would be seen in as many: a tail of the binomial distribution.
//!
//! # Assumption
//! Contacts come in the order of their times. Chatter that has nothing to do with the jobs but
//! comes several times in each of them looks the same from outside. So it is one rule of several:
//! the caller has to leave out threads that count for nothing whatever their rhythm (the kernel's
//! own threads, the first process).

use crate::period::NEARLY_ALL;
use crate::period::track::MEMORY;
use onbeat_model::{Instant, Span};

/// How sure it is that a thread has to do with most jobs of a pipeline. Raised: it is served later.
const SURE_OF_A_STAGE: f64 = 0.999;
/// A thread of a pipeline works in each so many-th job at the most.
const MOST_EVERY: usize = 4;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PathStanding {
    /// It works in every so many-th job: 1 for each.
    pub every: u32,
    /// In how many of those it was seen.
    pub seen: u64,
    /// How many of those jobs there were.
    pub of: u64,
    pub confidence: f64,
}

/// The contacts between a path and one other thread, in constant time and memory for each.
#[derive(Clone, Copy, Debug)]
pub struct Contacts {
    period: Span,
    since: Instant,
    last: Instant,
    /// The first contact in the job that was seen last.
    appeared: Option<Instant>,
    /// Jobs seen too soon after the last one, if every n-th counts.
    early: [u64; MOST_EVERY],
    /// Jobs left out, if every n-th counts.
    left_out: [u64; MOST_EVERY],
}

impl Contacts {
    #[must_use]
    pub const fn new(period: Span, since: Instant) -> Self {
        Self {
            period,
            since,
            last: since,
            appeared: None,
            early: [0; MOST_EVERY],
            left_out: [0; MOST_EVERY],
        }
    }

    #[must_use]
    pub const fn period(&self) -> Span {
        self.period
    }

    /// When the last contact was; if there was none yet, when it began to be listened to.
    #[must_use]
    pub const fn last(&self) -> Instant {
        self.last
    }

    pub fn hear(&mut self, at: Instant) {
        self.appear(at);
        let gap = at.since(self.last);
        self.last = self.last.max(at);
        if gap >= self.period {
            for (left_out, every) in self.left_out.iter_mut().zip(1..) {
                *left_out += left_out_in(gap, self.period * every);
            }
        }
        if jobs(at.since(self.since), self.period) > 2 * u64::from(MEMORY) {
            self.fade(at);
        }
    }

    /// A contact half a period after the first one in a job is one in another job.
    fn appear(&mut self, at: Instant) {
        let since = self.appeared.map(|first| at.since(first));
        if since.is_some_and(|since| since <= self.period / 2) {
            return;
        }
        self.appeared = Some(at);
        for (early, every) in self.early.iter_mut().zip(1..) {
            let soon = self.period * every * 3 / 4;
            *early += u64::from(since.is_some_and(|since| since < soon));
        }
    }

    /// Half as much of what was counts from now on.
    fn fade(&mut self, at: Instant) {
        self.since = self.since + at.since(self.since) / 2;
        for count in self.left_out.iter_mut().chain(&mut self.early) {
            *count /= 2;
        }
    }

    /// How the thread stands to the path at `now`; none if it has too little to do with it, or that
    /// is not sure yet.
    #[must_use]
    pub fn standing(&self, now: Instant) -> Option<PathStanding> {
        let observed = now.since(self.since);
        let silent = now.since(self.last);
        let counts = self.left_out.into_iter().zip(self.early);
        (1..).zip(counts).find_map(|(every, (left_out, early))| {
            let period = self.period * u64::from(every);
            let of = jobs(observed, period);
            let left_out = left_out + left_out_in(silent, period);
            let seen = of.saturating_sub(left_out);
            // In one job there may be many.
            let early = if every == 1 { 0 } else { early };
            if (of - seen).max(early) as f64 > (1.0 - NEARLY_ALL) * of as f64 {
                return None;
            }
            // It takes a step for each job left out, so it is asked for a few of them only.
            let confidence = confidence(seen, of);
            (confidence >= SURE_OF_A_STAGE).then_some(PathStanding {
                every,
                seen,
                of,
                confidence,
            })
        })
    }
}

fn jobs(over: Span, period: Span) -> u64 {
    (over + period / 2).as_ns() / period.as_ns().max(1)
}

fn left_out_in(gap: Span, period: Span) -> u64 {
    jobs(gap, period).saturating_sub(1)
}

/// One minus the probability of at least `seen` heads in `of` tosses of a coin.
fn confidence(seen: u64, of: u64) -> f64 {
    let mut term = 0.5_f64.powi(i32::try_from(of).unwrap_or(i32::MAX));
    let mut tail = term;
    // From "all" downwards: C(of, k-1) is C(of, k) times k / (of - k + 1).
    for k in (seen + 1..=of).rev() {
        term *= k as f64 / (of - k + 1) as f64;
        tail += term;
    }
    if of == 0 { 0.0 } else { (1.0 - tail).max(0.0) }
}

/// When a thread's work begins in each period: where the longest rest ends, if all its wakeups are
/// laid into one period. Zero without a wakeup or a period.
///
/// A server that is woken forty times for each frame has no release to be seen in a single one of
/// them.
#[must_use]
pub fn begin_of_work(wakeups: impl Iterator<Item = Instant>, period: Span) -> Instant {
    let ns = period.as_ns().max(1);
    let mut places: Vec<u64> = wakeups.map(|woke| woke.as_ns() % ns).collect();
    places.sort_unstable();
    places.dedup();
    let before = places.iter().rev().take(1).chain(places.iter());
    let rests = before.zip(&places).map(|(&before, &place)| {
        let rest = if place > before {
            place - before
        } else {
            place + ns - before
        };
        (rest, place)
    });
    // The first of several rests of one length counts.
    let longest = rests.reduce(|a, b| if b.0 > a.0 { b } else { a });
    Instant::from_ns(longest.map_or(0, |(_, place)| place))
}

#[cfg(test)]
mod tests;
