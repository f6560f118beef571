//! A run that is over, shown again as it went: what its report tells, moment by moment.

use std::time::Instant as Clock;

use onbeat_control::{Application, DoneJob, JobCounts, ServedBy, State, ThreadReport, What};
use onbeat_model::{Bandwidth, Instant, Span, TaskId};
use onbeat_top::{Feeder, News, SNAPSHOT_EVERY, Snapshot};

use crate::page::{PageDecision, PageRun};

pub(crate) struct TopReplay {
    begin: Instant,
    length: Span,
    applications: Vec<Application>,
    threads: Vec<Past>,
}

struct Past {
    seen: ThreadReport,
    ends_as: State,
    period: Option<Span>,
    jobs: Vec<DoneJob>,
    shown: usize,
    wakeups: Vec<Instant>,
    decisions: Vec<PageDecision>,
    decided: usize,
}

impl TopReplay {
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

    pub(crate) const fn length(&self) -> Span {
        self.length
    }

    pub(crate) fn after(&mut self, time: Span) -> Snapshot {
        let now = self.begin + time;
        let is_over = time >= self.length;
        let threads = self.threads.iter_mut();
        let told = threads.map(|past| past.go_on(now, is_over));
        let (threads, jobs): (Vec<_>, Vec<_>) = told.unzip();
        let held = threads.iter().filter_map(|seen| seen.present.reservation);
        Snapshot {
            now,
            reserved: held.map(|held| held.bandwidth()).sum(),
            total: Bandwidth::ZERO,
            // A report has no earlier sums.
            applications: if is_over {
                self.applications.clone()
            } else {
                Vec::new()
            },
            threads,
            jobs,
            decisions: Vec::new(),
        }
    }
}

impl Past {
    fn new(run: &PageRun, of: &ThreadReport) -> Self {
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
            seen: ThreadReport {
                task: of.task,
                stage: of.stage,
                confidence: of.confidence,
                counted: JobCounts {
                    counted_from: of.counted.counted_from,
                    ..JobCounts::default()
                },
                served: ServedBy {
                    application: of.served.application,
                    ..ServedBy::default()
                },
                ..ThreadReport::default()
            },
            ends_as: of.state,
            period: of.period,
            jobs,
            shown: 0,
            wakeups: wakeups.to_vec(),
            decisions: run.decisions_on(of).cloned().collect(),
            decided: 0,
        }
    }

    fn go_on(&mut self, at: Instant, is_over: bool) -> (ThreadReport, (TaskId, Vec<DoneJob>)) {
        let seen = &mut self.seen;
        let mut news = Vec::new();
        while let Some(done) = self.jobs.get(self.shown).filter(|done| done.ended <= at) {
            self.shown += 1;
            seen.counted.jobs += 1;
            seen.counted.missed += u64::from(done.missed);
            seen.executed += done.executed;
            seen.period = self.period;
            news.push(*done);
        }
        seen.present.bursts = self.wakeups.partition_point(|&wakeup| wakeup <= at) as u64;
        let is_past = |decision: &&PageDecision| decision.at_ns <= at;
        while let Some(decision) = self.decisions.get(self.decided).filter(is_past) {
            self.decided += 1;
            decide(seen, decision);
        }
        if is_over {
            seen.state = self.ends_as;
        }
        if seen.state == State::Ended {
            seen.present.reservation = None;
        }
        (seen.clone(), (seen.task.id, news))
    }
}

fn decide(seen: &mut ThreadReport, decision: &PageDecision) {
    let present = &mut seen.present;
    present.why.clone_from(&decision.why);
    (seen.state, present.reservation) = match decision.what {
        What::Reserved | What::Changed => (State::Kept, decision.new),
        What::TakenOver => (State::TakenOver, None),
        What::Refused if present.reservation.is_none() => (State::Refused, None),
        What::Refused | What::Doubted => return,
        What::Released => (State::Released, None),
    };
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
pub(crate) mod tests;
