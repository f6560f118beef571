//! A recording as a sensor: its clock goes forward by each poll's timeout, so that the loop runs
//! over it deterministically and as fast as it can compute.

use std::collections::{HashMap, HashSet};
use std::iter;
use std::path::Path;

use onbeat_model::{Event, Flow, Follow, Instant, Sensor, Span, Task, TaskId};

use super::{ReadError, Recording, read};

const TASKS_SHOWN: usize = 8;

/// Plays a recording back.
///
/// Nothing is reported before [`track`](Sensor::track) or [`track_all`](Self::track_all).
#[derive(Clone, Debug)]
pub struct Replay {
    recording: Recording,
    next: usize,
    now: Instant,
    tracked: HashSet<u32>,
    ignored: HashSet<TaskId>,
    announce: Vec<Event>,
    executed: HashMap<TaskId, Span>,
}

impl Replay {
    pub fn open(path: impl AsRef<Path>) -> Result<Self, ReadError> {
        read(path).map(Self::new)
    }

    pub fn new(recording: Recording) -> Self {
        Self {
            next: 0,
            now: recording.began,
            tracked: HashSet::new(),
            ignored: HashSet::new(),
            announce: Vec::new(),
            executed: HashMap::new(),
            recording,
        }
    }

    pub const fn recording(&self) -> &Recording {
        &self.recording
    }

    pub fn track_all(&mut self) {
        let tasks = self.recording.tasks.iter();
        let tids: Vec<u32> = tasks.map(|task| task.id.tid).collect();
        for tid in tids {
            self.add(tid);
        }
    }

    fn add(&mut self, tid: u32) {
        if !self.tracked.insert(tid) {
            return;
        }
        let past = self.recording.events.get(..self.next).unwrap_or_default();
        let seen = past.iter().rev().find_map(|event| match event {
            Event::Tracked { task, .. } | Event::Renamed { task, .. } if task.id.tid == tid => {
                Some(*task)
            }
            _ => None,
        });
        self.announce
            .extend(seen.map(|task| Event::Tracked { at: self.now, task }));
    }

    /// The tasks that are tracked with the thread `tid`: the threads of its process and, if
    /// children are followed, everything that descends from it as far as the recording tells.
    fn followed(&self, tid: u32, follow: Follow) -> Vec<u32> {
        let tasks = &self.recording.tasks;
        let pid_of = |tid| tasks.iter().find(|t| t.id.tid == tid).map(|t| t.pid);
        let process = pid_of(tid);
        let is_followed = |task: &&Task| {
            task.id.tid == tid
                || follow != Follow::Alone && process == Some(task.pid)
                || follow == Follow::Children && self.descends(task.id.tid, tid)
        };
        let tasks = tasks.iter().filter(is_followed);
        tasks.map(|task| task.id.tid).collect()
    }

    fn descends(&self, tid: u32, ancestor: u32) -> bool {
        let parents = &self.recording.parents;
        let mut ancestors = iter::successors(Some(tid), |tid| parents.get(tid).copied());
        ancestors
            .by_ref()
            .take(parents.len() + 1)
            .any(|tid| tid == ancestor)
    }

    fn is_reported(&self, event: &Event) -> bool {
        event
            .task()
            .is_none_or(|task| self.tracked.contains(&task.tid) && !self.ignored.contains(&task))
    }
}

impl Sensor for Replay {
    type Error = ReadError;

    fn track(&mut self, tid: u32, follow: Follow) -> Result<(), ReadError> {
        let followed = self.followed(tid, follow);
        if followed.is_empty() {
            return Err(ReadError::NoSuchThread {
                tid,
                known: known(&self.recording.tasks),
            });
        }
        self.ignored.retain(|task| !followed.contains(&task.tid));
        followed.into_iter().for_each(|tid| self.add(tid));
        Ok(())
    }

    fn untrack(&mut self, tasks: &[TaskId]) -> Result<(), ReadError> {
        self.ignored.extend(tasks);
        Ok(())
    }

    /// Goes forward by `timeout` and appends what happened until then. A budget that ran out ends
    /// the step there.
    fn poll(&mut self, timeout: Span, events: &mut Vec<Event>) -> Result<Flow, ReadError> {
        let until = self.now + timeout;
        events.append(&mut self.announce);
        while let Some(&event) = self.recording.events.get(self.next) {
            if event.at() > until {
                self.now = until;
                return Ok(Flow::Open);
            }
            self.next += 1;
            self.now = self.now.max(event.at());
            if !self.is_reported(&event) {
                continue;
            }
            events.push(event);
            match event {
                Event::Burst(burst) => {
                    *self.executed.entry(burst.task).or_default() += burst.executed;
                }
                Event::Tracked { task, .. } => {
                    self.executed.entry(task.id).or_default();
                }
                Event::Exited { task, .. } => {
                    self.executed.remove(&task);
                }
                Event::Exhausted { .. } => return Ok(Flow::Open),
                _ => {}
            }
        }
        Ok(Flow::Ended)
    }

    fn now(&self) -> Instant {
        self.now
    }

    /// The CPU time of the task's bursts up to now: a burst counts when it ends, because a
    /// recording does not tell more.
    fn executed(&mut self, task: TaskId) -> Option<Span> {
        self.executed.get(&task).copied()
    }
}

fn known(tasks: &[Task]) -> String {
    let mut text = tasks
        .iter()
        .take(TASKS_SHOWN)
        .map(|task| format!("{} ({})", task.id, task.comm))
        .collect::<Vec<_>>()
        .join(", ");
    match tasks.len() {
        0 => text.push_str("none"),
        n if n > TASKS_SHOWN => text.push_str(&format!(" and {} more", n - TASKS_SHOWN)),
        _ => {}
    }
    text
}
