//! A run that is over, shown again as it went: what its report tells, moment by moment.

use std::time::Instant as Clock;

use onbeat_control::{Application, DoneJob};
use onbeat_model::{Bandwidth, Instant, Name, Reservation, Span, Task, TaskId};
use onbeat_top::{Feeder, News, SNAPSHOT_EVERY, Snapshot, State, ThreadSnapshot};

use crate::page::{PageDecision, PageRun, PageThread};

/// See the file's head.
pub(crate) struct TopReplay {
    begin: Instant,
    length: Span,
    /// Their sums at the end.
    applications: Vec<Application>,
    threads: Vec<Past>,
}

/// One thread, as far as it was shown.
struct Past {
    seen: ThreadSnapshot,
    /// The period that its jobs have.
    period: Option<Span>,
    jobs: Vec<DoneJob>,
    shown: usize,
    wakeups: Vec<Instant>,
    decisions: Vec<PageDecision>,
    decided: usize,
}

impl TopReplay {
    /// From the first moment that `run` tells.
    pub(crate) fn new(run: &PageRun) -> Self {
        let begin = run.begins();
        let threads: Vec<Past> = run.threads.iter().map(|of| Past::new(run, of)).collect();
        let ends = threads.iter().flat_map(|past| {
            let jobs = past.jobs.last().map(|done| done.ended);
            let decisions = past.decisions.last().map(|last| last.at_ns);
            [jobs, decisions, past.wakeups.last().copied()]
        });
        Self {
            begin,
            length: ends.flatten().max().unwrap_or(begin).since(begin),
            applications: run.applications.clone(),
            threads,
        }
    }

    /// How long it is.
    pub(crate) const fn length(&self) -> Span {
        self.length
    }

    /// The snapshot at `time` after the beginning. To be asked in the order of time.
    pub(crate) fn after(&mut self, time: Span) -> Snapshot {
        let at = self.begin + time;
        let mut snapshot = Snapshot {
            at,
            // A report has no earlier sums.
            applications: if time >= self.length {
                self.applications.clone()
            } else {
                Vec::new()
            },
            ..Snapshot::default()
        };
        for past in &mut self.threads {
            let seen = past.go_on(at);
            snapshot.reserved += seen.held.map_or(Bandwidth::ZERO, |held| held.bandwidth());
            snapshot.threads.push(seen);
        }
        snapshot
    }
}

impl Past {
    fn new(run: &PageRun, of: &PageThread) -> Self {
        let history = run.history_of(of);
        let jobs = history
            .into_iter()
            .flat_map(|history| history.recent_jobs.iter());
        let mut jobs: Vec<DoneJob> = jobs.collect();
        jobs.sort_by_key(|done| done.ended);
        let wakeups = history
            .map(|history| &history.wakeups_ns[..])
            .unwrap_or_default();
        Self {
            seen: ThreadSnapshot {
                task: Task {
                    id: TaskId {
                        tid: of.tid,
                        started_ticks: of.started_ticks,
                    },
                    pid: of.pid,
                    comm: Name::from(&*of.comm),
                },
                application: of.application,
                user: None,
                state: State::Watched,
                period: None,
                confidence: of.confidence,
                held: None,
                jobs: 0,
                counted_from: of.counted_from_ns,
                missed: 0,
                exhaustions: 0,
                bursts: 0,
                executed: Span::ZERO,
                refusal: String::new(),
                path: of.stage.map_or_else(String::new, |stage| stage.to_string()),
                why: String::new(),
                news: Vec::new(),
            },
            period: of.period_ns,
            jobs,
            shown: 0,
            wakeups: wakeups.to_vec(),
            decisions: run.decisions_on(of).cloned().collect(),
            decided: 0,
        }
    }

    fn go_on(&mut self, at: Instant) -> ThreadSnapshot {
        let seen = &mut self.seen;
        seen.news.clear();
        while let Some(done) = self.jobs.get(self.shown).filter(|done| done.ended <= at) {
            self.shown += 1;
            seen.jobs += 1;
            seen.missed += u64::from(done.missed);
            seen.executed += done.executed;
            seen.period = self.period;
            seen.news.push(*done);
        }
        seen.bursts = self.wakeups.partition_point(|&wakeup| wakeup <= at) as u64;
        let is_past = |decision: &&PageDecision| decision.at_ns <= at;
        while let Some(decision) = self.decisions.get(self.decided).filter(is_past) {
            self.decided += 1;
            decide(seen, decision);
        }
        seen.clone()
    }
}

fn decide(seen: &mut ThreadSnapshot, decision: &PageDecision) {
    seen.why.clone_from(&decision.why);
    let new = decision.new;
    let new = new.and_then(|new| Reservation::implicit(new.runtime_ns, new.period_ns).ok());
    let named = match &*decision.what {
        "reserved" | "changed" => (State::Kept, new),
        "taken-over" => (State::TakenOver, None),
        "refused" if seen.held.is_none() => (State::Refused, None),
        "refused" => return,
        _ => (State::Released, None),
    };
    (seen.state, seen.held) = named;
}

/// Shows `replay` as fast as it went, until the screen is gone.
pub(crate) fn follow(mut replay: TopReplay, feeder: &Feeder) {
    let began = Clock::now();
    loop {
        let gone = Span::from_ns(u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX));
        let snapshot = replay.after(gone.min(replay.length()));
        let told = feeder.send(News::Snapshot(snapshot)).and_then(|()| {
            if gone < replay.length() {
                return Ok(());
            }
            feeder.send(News::Trouble("the run is over".to_owned()))
        });
        if told.is_err() {
            return;
        }
        std::thread::sleep(SNAPSHOT_EVERY);
    }
}

#[cfg(test)]
mod tests;
