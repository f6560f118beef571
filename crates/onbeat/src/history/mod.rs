//! The history of threads and of the decisions for them, for `--report` and `--perfetto`: the last
//! bursts of each thread, the jobs that they are, and the decisions.

mod store;

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::io::{self, Write};
use std::sync::mpsc::{self, Receiver, Sender};

use onbeat_control::{Decision, DoneJob, Entry, SpeedEntry, State};
use onbeat_daemon::watch::Watch;
use onbeat_infer::recorded::{self, Recorded};
use onbeat_metrics::cgroup_of;
use onbeat_model::{
    Burst, Cgroup, Event, Flow, Follow, Instant, Job, Quantiles, Rhythm, Sensor, Span, Task, TaskId,
};
use onbeat_sense::recording::Recording;
use onbeat_timeline::{Detail, Lanes, Timeline, Unit};
use onbeat_top::harmless;
use serde::{Deserialize, Serialize};
pub(crate) use store::DroppedBursts;
use store::{Store, StoredThread};

const MOST_DECISIONS: usize = 10_000;

#[derive(Default)]
pub(crate) struct RunHistory {
    threads: Store,
    decisions: VecDeque<Entry>,
    /// Where the threads of these belonged when the first one was made.
    places: BTreeMap<TaskId, Cgroup>,
    speeds: VecDeque<SpeedEntry>,
    counted: Option<Receiver<Job>>,
}

/// The history of one thread, as `--report` writes it; `docs/report.md` describes it.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct ThreadHistory {
    #[serde(flatten)]
    pub(crate) id: TaskId,
    pub(crate) recent_jobs: JobColumns,
    /// What would have been jobs before the loop counted, along the period that was found later.
    #[serde(default)]
    pub(crate) uncounted_jobs: JobColumns,
    pub(crate) wakeups_ns: Vec<Instant>,
}

#[derive(Serialize)]
pub(crate) struct ThreadPlace<'a> {
    #[serde(flatten)]
    task: TaskId,
    #[serde(flatten)]
    cgroup: &'a Cgroup,
}

/// The report that `analyze --report` and `watch --report` write: what of `run --report` is known
/// without the loop.
#[derive(Serialize)]
pub(crate) struct RecordedReport {
    pub(crate) threads: Vec<RecordedThread>,
    elapsed_ns: Span,
    lost_events: u64,
    history: Vec<ThreadHistory>,
    history_dropped: DroppedBursts,
}

/// A thread of it. `watch --json` writes one to a line.
#[derive(Serialize)]
pub(crate) struct RecordedThread {
    #[serde(flatten)]
    pub(crate) task: Task,
    state: State,
    pub(crate) period_ns: Option<Span>,
    pub(crate) confidence: f64,
    pub(crate) jobs: usize,
    pub(crate) missed: usize,
    pub(crate) response_time: Option<Quantiles>,
    pub(crate) demand: Option<Quantiles>,
    pub(crate) executed_ns: Span,
}

#[derive(Debug, Default, Deserialize, Serialize)]
pub(crate) struct JobColumns {
    release_ns: Vec<Instant>,
    deadline_ns: Vec<Instant>,
    ended_ns: Vec<Instant>,
    executed_ns: Vec<Span>,
}

impl ThreadHistory {
    /// The first wakeup; the first release, where no wakeups are known.
    pub(crate) fn first(&self) -> Option<Instant> {
        let released = self.recent_jobs.release_ns.first();
        self.wakeups_ns.first().or(released).copied()
    }
}

impl RunHistory {
    /// The history of a recording, in which nothing was decided: all jobs are counted.
    pub(crate) fn of(recording: &Recording) -> Self {
        let mut history = Self::default();
        history.hear(&recording.events);
        history.count_all();
        history
    }

    pub(crate) fn count_all(&mut self) {
        let threads = self.threads.threads();
        let jobs: Vec<Job> = threads
            .flat_map(|thread| jobs_of(thread.heard().1))
            .collect();
        jobs.into_iter().for_each(|job| self.threads.count(job));
    }

    pub(crate) fn listener(&mut self) -> Sender<Job> {
        let (sender, receiver) = mpsc::channel();
        self.counted = Some(receiver);
        sender
    }

    pub(crate) fn take_jobs(&mut self) {
        for job in self.counted.iter().flat_map(Receiver::try_iter) {
            self.threads.count(job);
        }
    }

    pub(crate) fn hear(&mut self, events: &[Event]) {
        for event in events {
            self.threads.hear(event);
        }
    }

    pub(crate) fn decided(&mut self, decision: &Decision) {
        match decision {
            Decision::Reservation(entry) => {
                if self.places.len() < MOST_DECISIONS {
                    let task = entry.task.id;
                    self.places.entry(task).or_insert_with(|| cgroup_of(task));
                }
                push(&mut self.decisions, entry.clone());
            }
            Decision::Boost(_) => {}
            Decision::Speed(entry) => push(&mut self.speeds, entry.clone()),
        }
    }

    pub(crate) fn places(&self) -> Vec<ThreadPlace<'_>> {
        let places = self.places.iter();
        places
            .map(|(&task, cgroup)| ThreadPlace { task, cgroup })
            .collect()
    }

    pub(crate) const fn decisions(&self) -> &VecDeque<Entry> {
        &self.decisions
    }

    pub(crate) const fn speed_decisions(&self) -> &VecDeque<SpeedEntry> {
        &self.speeds
    }

    fn in_order(&self) -> Vec<&StoredThread> {
        let mut threads: Vec<&StoredThread> = self.threads.threads().collect();
        threads.sort_by_key(|thread| thread.task.id);
        threads
    }

    pub(crate) const fn dropped(&self) -> DroppedBursts {
        self.threads.dropped()
    }

    pub(crate) fn threads(&self) -> Vec<ThreadHistory> {
        let threads = self.in_order().into_iter();
        threads
            .map(|thread| ThreadHistory {
                id: thread.task.id,
                recent_jobs: thread.jobs.iter().collect(),
                uncounted_jobs: thread.uncounted().iter().collect(),
                wakeups_ns: thread.bursts.iter().map(|burst| burst.woke).collect(),
            })
            .collect()
    }

    /// The periods of the threads that use most CPU time, as far as they have one, in words.
    pub(crate) fn busiest_rhythms(&self) -> String {
        const SHOWN: usize = 3;
        let executed = |thread: &&StoredThread| -> Span {
            let bursts = thread.bursts.iter().map(|burst| burst.executed);
            bursts.sum()
        };
        let mut threads = self.in_order();
        threads.sort_by_cached_key(|thread| std::cmp::Reverse(executed(thread)));
        let told = threads.into_iter().take(SHOWN).map(|thread| {
            let period = thread.heard().0.map(|rhythm| rhythm.period.to_string());
            let period = period.unwrap_or_else(|| "no period".to_owned());
            format!("{} {period}", harmless(&thread.task.comm.to_text()))
        });
        let told: Vec<String> = told.collect();
        told.join(", ")
    }

    pub(crate) fn report(&self, elapsed_ns: Span, lost_events: u64) -> RecordedReport {
        let threads = self.in_order().into_iter();
        RecordedReport {
            threads: threads.map(StoredThread::recorded).collect(),
            elapsed_ns,
            lost_events,
            history: self.threads(),
            history_dropped: self.dropped(),
        }
    }

    /// Writes a timeline for Perfetto: bursts, jobs, budgets and decisions.
    pub(crate) fn write_timeline(&self, output: impl Write) -> io::Result<()> {
        let mut timeline = Timeline::new(output);
        for thread in self.in_order() {
            self.write_thread(&mut timeline, thread);
        }
        if !self.speeds.is_empty() {
            let group = timeline.group("CPUs");
            let decisions = timeline.track(group, "decisions on the speed");
            for entry in &self.speeds {
                let why = entry.why.to_string();
                let speed = entry.new.map_or(0, |speed| speed.as_khz());
                let details = [("why", Detail::Words(&why)), ("khz", Detail::Number(speed))];
                timeline.instant(decisions, &in_words(&entry.what), entry.at, &details);
            }
        }
        timeline.finish()
    }

    fn write_thread<W: Write>(&self, timeline: &mut Timeline<W>, thread: &StoredThread) {
        let task = &thread.task;
        let group = timeline.group(&format!("{} {}", task.comm, task.id.tid));
        let mut jobs = Lanes::new(group, "jobs");
        let uncounted = thread.uncounted();
        let names = [["job", "missed"], ["not counted", "not counted, late"]];
        let all = [
            thread.jobs.iter().collect(),
            uncounted.iter().collect::<Vec<_>>(),
        ];
        let named = names.iter().zip(&all).rev();
        for (names, job) in named.flat_map(|(names, jobs)| jobs.iter().map(move |job| (names, job)))
        {
            let name = names[usize::from(job.missed())];
            let details = [
                ("deadline_ns", Detail::Number(job.deadline.as_ns())),
                ("executed_ns", Detail::ns(job.executed)),
            ];
            jobs.slice(
                timeline,
                name,
                (job.release.min(job.woke), job.ended),
                &details,
            );
        }
        let bursts = timeline.track(group, "bursts");
        for burst in &thread.bursts {
            if burst.woke < burst.first_ran {
                timeline.slice(bursts, "waits", (burst.woke, burst.first_ran), &[]);
            }
            let details = [
                ("executed_ns", Detail::ns(burst.executed)),
                ("preempted", Detail::Number(burst.preempted.into())),
                ("waker", Detail::Number(burst.waker.into())),
            ];
            timeline.slice(bursts, "runs", (burst.first_ran, burst.blocked), &details);
        }
        for &at in &thread.exhausted {
            timeline.instant(bursts, "budget ran out", at, &[]);
        }
        let mut decisions = self
            .decisions
            .iter()
            .filter(|entry| entry.task.id == task.id)
            .peekable();
        if decisions.peek().is_none() {
            return;
        }
        let track = timeline.track(group, "decisions");
        let budget = timeline.counter(group, "budget", Unit::Time);
        let share = timeline.counter(group, "reserved", Unit::Percent);
        for entry in decisions {
            let why = entry.why.to_string();
            timeline.instant(
                track,
                &in_words(&entry.what),
                entry.at,
                &[("why", Detail::Words(&why))],
            );
            if entry.what == onbeat_control::What::Refused {
                continue;
            }
            let runtime = entry.new.map_or(Span::ZERO, |new| new.runtime());
            let percent = entry
                .new
                .map_or(0.0, |new| new.bandwidth().as_cpus() * 100.0);
            timeline.count(
                budget,
                entry.at,
                i64::try_from(runtime.as_ns()).unwrap_or(i64::MAX),
            );
            timeline.count(share, entry.at, percent.round() as i64);
        }
    }
}

fn in_words(what: &impl Serialize) -> String {
    let name = serde_json::to_value(what).ok();
    let name = name.as_ref().and_then(|name| name.as_str());
    name.unwrap_or_default().replace('_', " ")
}

/// Adds the newest decision, in the place of the oldest if there are too many.
fn push<T>(list: &mut VecDeque<T>, item: T) {
    if list.len() == MOST_DECISIONS {
        list.pop_front();
    }
    list.push_back(item);
}

impl StoredThread {
    fn recorded(&self) -> RecordedThread {
        let rhythm = self.heard().0;
        let jobs = &self.jobs;
        let responses = jobs.iter().map(Job::response_time);
        let demands = jobs.iter().map(|job| job.executed);
        RecordedThread {
            task: self.task,
            state: State::Recorded,
            period_ns: rhythm.map(|rhythm| rhythm.period),
            confidence: rhythm.map_or(0.0, |rhythm| rhythm.confidence),
            jobs: jobs.len(),
            missed: jobs.iter().filter(|job| job.missed()).count(),
            response_time: Quantiles::of(responses.collect()),
            demand: Quantiles::of(demands.collect()),
            executed_ns: self.bursts.iter().map(|burst| burst.executed).sum(),
        }
    }

    /// What would have been its jobs before the first one that is counted.
    fn uncounted(&self) -> Vec<Job> {
        let mut jobs = jobs_of(self.heard().1);
        jobs.retain(|job| self.counted_from.is_none_or(|from| job.woke < from));
        jobs
    }

    fn heard(&self) -> (Option<Rhythm>, Vec<Recorded>) {
        let mut bursts: Vec<Burst> = self.bursts.iter().copied().collect();
        bursts.sort_by_key(|burst| burst.woke);
        let (Some(first), Some(last)) = (bursts.first(), bursts.last()) else {
            return (None, Vec::new());
        };
        // A program begins irregularly, or changes its rate: its later half may have the rhythm
        // that the whole has not.
        let halves = [&bursts[..], &bursts[bursts.len() / 2..]];
        let (window, to) = (last.blocked.since(first.woke), last.blocked);
        let found = halves
            .iter()
            .find_map(|half| recorded::rhythms(half, window, to).first().copied());
        let jobs = found.map(|rhythm| recorded::jobs(&bursts, rhythm));
        (found, jobs.unwrap_or_default())
    }
}

fn jobs_of(recorded: Vec<Recorded>) -> Vec<Job> {
    recorded.into_iter().map(|recorded| recorded.job).collect()
}

impl JobColumns {
    pub(crate) fn last_ended(&self) -> Option<Instant> {
        self.ended_ns.last().copied()
    }

    /// Adds a job of a thread with this period; of too many, the older half is left out.
    pub(crate) fn push(&mut self, job: &DoneJob, period: Span) {
        if self.ended_ns.len() >= store::MOST_BURSTS {
            let half = ..store::MOST_BURSTS / 2;
            for times in [
                &mut self.release_ns,
                &mut self.deadline_ns,
                &mut self.ended_ns,
            ] {
                times.drain(half);
            }
            self.executed_ns.drain(half);
        }
        let deadline = job.ended - job.response + period;
        self.release_ns.push(job.ended - job.response);
        // The end of its period may be another by now.
        self.deadline_ns.push(if job.missed {
            deadline.min(job.ended - Span::from_ns(1))
        } else {
            deadline.max(job.ended)
        });
        self.ended_ns.push(job.ended);
        self.executed_ns.push(job.executed);
    }

    /// As many jobs as all lists hold.
    pub(crate) fn iter(&self) -> impl Iterator<Item = DoneJob> {
        let ends = self.deadline_ns.iter().zip(&self.ended_ns);
        let jobs = self.release_ns.iter().zip(ends).zip(&self.executed_ns);
        jobs.map(|((&release, (&deadline, &ended)), &executed)| DoneJob {
            ended,
            response: ended.since(release),
            executed,
            missed: ended > deadline,
        })
    }
}

impl<'a> FromIterator<&'a Job> for JobColumns {
    fn from_iter<T: IntoIterator<Item = &'a Job>>(jobs: T) -> Self {
        let mut columns = Self::default();
        for job in jobs {
            columns.release_ns.push(job.release.min(job.woke));
            columns.deadline_ns.push(job.deadline);
            columns.ended_ns.push(job.ended);
            columns.executed_ns.push(job.executed);
        }
        columns
    }
}

/// A sensor that tells the history, if there is one, what it tells.
pub(crate) struct Tap<'a, S> {
    pub(crate) sensor: &'a mut S,
    pub(crate) history: Option<&'a RefCell<RunHistory>>,
    pub(crate) watch: Option<Watch>,
}

impl<S: Sensor> Tap<'_, S> {
    fn turns_by(&self, next: Instant) {
        if let Some(watch) = &self.watch {
            watch.turned(next);
        }
    }
}

impl<S: Sensor> Sensor for Tap<'_, S> {
    type Error = S::Error;

    fn track(&mut self, tid: u32, follow: Follow) -> Result<(), S::Error> {
        self.sensor.track(tid, follow)
    }

    fn untrack(&mut self, tasks: &[TaskId]) -> Result<(), S::Error> {
        self.sensor.untrack(tasks)
    }

    fn poll(&mut self, timeout: Span, events: &mut Vec<Event>) -> Result<Flow, S::Error> {
        let before = events.len();
        self.turns_by(self.now() + timeout);
        let flow = self.sensor.poll(timeout, events);
        self.turns_by(self.now());
        if let Some(history) = self.history {
            history
                .borrow_mut()
                .hear(events.get(before..).unwrap_or_default());
        }
        flow
    }

    fn now(&self) -> Instant {
        self.sensor.now()
    }

    fn executed(&mut self, task: TaskId) -> Option<Span> {
        self.sensor.executed(task)
    }

    fn assign(&mut self, task: TaskId, application: u32) {
        self.sensor.assign(task, application);
    }

    fn spent(&mut self, application: u32) -> Option<Span> {
        self.sensor.spent(application)
    }

    fn idle(&mut self) -> Option<Vec<Span>> {
        self.sensor.idle()
    }
}

#[cfg(test)]
mod tests {
    use onbeat_model::Name;

    use super::*;

    #[test]
    fn a_threads_name_tells_the_terminal_nothing() {
        let mut history = RunHistory::default();
        let id = TaskId::recorded(7);
        let comm = Name::new(b"\x1b]0;x\x07");
        let task = Task { id, pid: 7, comm };
        let at = Instant::ZERO;
        history.hear(&[Event::Tracked { at, task }]);
        assert_eq!(history.busiest_rhythms(), "·]0;x· no period");
    }
}
