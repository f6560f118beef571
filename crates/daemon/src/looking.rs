//! What somebody who looks on, again and again, is told each time: how things stand, and what
//! happened since.

use std::collections::BTreeSet;

use onbeat_control::{Controller, Done};
use onbeat_model::{Actuator, Bandwidth, Instant, TaskId};

use crate::book::Shared;
use crate::keeper::list;
use crate::request::{Caller, Item};

/// The jobs of so many threads are told at a time at most: more than a screen has lines.
pub const MOST_THREADS: usize = 256;

/// What is wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Glance {
    /// Jobs that ended after this.
    pub since: Instant,
    /// Of these threads.
    pub jobs_of: BTreeSet<u32>,
    /// The wakeups of this thread.
    pub wakeups_of: Option<u32>,
}

/// What is told.
#[derive(Clone, Debug)]
pub struct Seen {
    /// When, on the clock of all times here (CLOCK_MONOTONIC).
    pub now: Instant,
    /// What all reservations together take, everybody's.
    pub reserved: Bandwidth,
    /// What they may take.
    pub total: Bandwidth,
    /// The threads that the caller may see.
    pub items: Vec<Item>,
    /// Jobs by thread, as far as they are wanted, and the thread may be seen.
    pub jobs: Vec<(u32, Vec<Done>)>,
    /// The wakeups of the last seconds.
    pub wakeups: Vec<Instant>,
}

impl Seen {
    /// What `caller` sees at `now`.
    pub(crate) fn of<A: Actuator>(
        caller: &Caller,
        glance: &Glance,
        book: &Shared,
        controller: &Controller<A>,
        now: Instant,
    ) -> Self {
        let items = list(caller, book, controller);
        let held = controller.held().map(|(_, held)| held.bandwidth());
        let ids = items.iter().map(|item| item.view.task.id);
        let ids: Vec<TaskId> = ids.collect();
        let wanted = ids.iter().filter(|id| glance.jobs_of.contains(&id.tid));
        let jobs = wanted.map(|&id| (id.tid, controller.recent_jobs(id, glance.since).collect()));
        let woken = ids.iter().filter(|id| glance.wakeups_of == Some(id.tid));
        Self {
            now,
            reserved: held.sum(),
            total: controller.total(),
            jobs: jobs.collect(),
            wakeups: woken.flat_map(|&id| controller.wakeups(id)).collect(),
            items,
        }
    }
}
