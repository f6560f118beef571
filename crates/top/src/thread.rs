//! The memory of a thread from snapshot to snapshot: its jobs, what it used, and what changed.

use std::collections::VecDeque;

use onbeat_control::{DoneJob, State, ThreadReport};
use onbeat_model::{Bandwidth, Instant, Reservation, Span};

const MOST_JOBS: usize = 1024;
/// The seconds of response times that are remembered: more than a screen is wide.
const MOST_SECONDS: usize = 300;
const MOST_CHANGES: usize = 100;
const USED_OVER: Span = Span::from_secs(2);
const NEW_FOR: Span = Span::from_secs(2);

/// The jobs that ended within one second of the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Second {
    pub(crate) number: u64,
    pub(crate) longest: Span,
    pub(crate) missed: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ThreadChange {
    pub(crate) at: Instant,
    pub(crate) state: State,
    pub(crate) held: Option<Reservation>,
    pub(crate) why: String,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Use(VecDeque<(Instant, Span)>);

impl Use {
    pub(crate) fn update(&mut self, at: Instant, executed: Span) {
        // A run that is over stands still.
        if self.0.back().is_none_or(|&(last, _)| at > last) {
            self.0.push_back((at, executed));
        }
        while self
            .0
            .get(1)
            .is_some_and(|&(then, _)| at.since(then) >= USED_OVER)
        {
            self.0.pop_front();
        }
    }

    pub(crate) fn mean(&self) -> Option<Bandwidth> {
        let (&(from, before), &(to, after)) = (self.0.front()?, self.0.back()?);
        (to > from).then(|| Bandwidth::of(after - before, to.since(from)))
    }
}

#[derive(Clone, Debug)]
pub(crate) struct ShownThread {
    pub(crate) seen: ThreadReport,
    pub(crate) jobs: VecDeque<DoneJob>,
    pub(crate) seconds: VecDeque<Second>,
    pub(crate) changes: VecDeque<ThreadChange>,
    used: Use,
}

impl ShownThread {
    pub(crate) fn new(seen: ThreadReport, at: Instant) -> Self {
        let mut used = Use::default();
        used.update(at, seen.executed);
        Self {
            used,
            jobs: VecDeque::new(),
            seconds: VecDeque::new(),
            changes: VecDeque::new(),
            seen,
        }
    }

    pub(crate) fn update(&mut self, seen: ThreadReport, at: Instant) {
        let (before, now) = (&self.seen, &seen);
        let is_new = before.state != now.state
            || before.present.reservation != now.present.reservation
            || before.present.why != now.present.why;
        self.seen = seen;
        if is_new {
            let change = ThreadChange {
                at,
                state: self.seen.state,
                held: self.seen.present.reservation,
                why: self.reason(),
            };
            push(&mut self.changes, change, MOST_CHANGES);
        }
        self.used.update(at, self.seen.executed);
    }

    pub(crate) fn did(&mut self, jobs: Vec<DoneJob>) {
        for done in jobs {
            let number = done.ended.as_ns() / 1_000_000_000;
            match self.seconds.back_mut().filter(|last| last.number == number) {
                Some(second) => {
                    second.longest = second.longest.max(done.response);
                    second.missed |= done.missed;
                }
                None => {
                    let second = Second {
                        number,
                        longest: done.response,
                        missed: done.missed,
                    };
                    push(&mut self.seconds, second, MOST_SECONDS);
                }
            }
            push(&mut self.jobs, done, MOST_JOBS);
        }
    }

    pub(crate) fn used(&self) -> Option<Bandwidth> {
        self.used.mean()
    }

    pub(crate) fn reserved(&self) -> Option<Bandwidth> {
        let held = self.seen.present.reservation;
        held.map(|held| held.bandwidth())
    }

    pub(crate) fn path(&self) -> String {
        let stage = self.seen.stage.as_ref();
        stage.map_or_else(String::new, ToString::to_string)
    }

    pub(crate) fn reason(&self) -> String {
        let (present, path) = (&self.seen.present, self.path());
        let why = match (&self.seen.served.refusal, present.bursts) {
            (Some(refusal), _) => refusal.clone(),
            _ if !present.why.is_empty() => present.why.clone(),
            (None, 0) => "it has not run yet".to_owned(),
            (None, 1) => "no period after one burst".to_owned(),
            (None, n) => format!("no period after {n} bursts"),
        };
        if path.is_empty() || why.contains(&path) {
            why
        } else {
            format!("{path}: {why}")
        }
    }

    pub(crate) fn response(&self, quantile: f64) -> Option<Span> {
        let mut all: Vec<Span> = self.jobs.iter().map(|done| done.response).collect();
        all.sort_unstable();
        let rank = (quantile * all.len() as f64).ceil() as usize;
        all.get(rank.saturating_sub(1)).copied()
    }

    pub(crate) fn is_news(&self, now: Instant) -> bool {
        let last = self.changes.back();
        last.is_some_and(|change| now.since(change.at) < NEW_FOR)
    }
}

fn push<T>(list: &mut VecDeque<T>, item: T, most: usize) {
    if list.len() >= most {
        list.pop_front();
    }
    list.push_back(item);
}
