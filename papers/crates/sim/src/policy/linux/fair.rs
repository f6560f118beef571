//! Fair tasks: EEVDF (Stoica and Abdel-Wahab 1995), as the kernel has it since 6.6.
//!
//! Every task has a virtual runtime, which runs slower the heavier it is. A task is eligible if it
//! has had no more than its share: its virtual runtime is at most the weighted average of all. The
//! eligible task with the earliest virtual deadline runs, for a slice. A task that is ahead or
//! behind when it blocks is so by as much when it wakes, at most two slices.
//!
//! Simpler than the kernel: a task that blocks while it is ahead leaves the queue at once.

use std::collections::BTreeSet;

use onbeat_model::{Instant, Span};

use crate::{CpuIndex, TaskIndex};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fair {
    pub weight: u32,
    pub slice: Span,
}

/// The kernel's weights, nice -20 first: each step is a quarter more than the next.
const WEIGHTS: [u32; 40] = [
    88761, 71755, 56483, 46273, 36291, 29154, 23254, 18705, 14949, 11916, 9548, 7620, 6100, 4904,
    3906, 3121, 2501, 1991, 1586, 1277, 1024, 820, 655, 526, 423, 335, 272, 215, 172, 137, 110, 87,
    70, 56, 45, 36, 29, 23, 18, 15,
];

impl Fair {
    /// The kernel's slice on one or two CPUs is 0.7 or 1.4 ms, on eight and more 2.8 ms.
    pub const SLICE: Span = Span::from_us(2_800);

    /// A task of that niceness, from -20 to 19; beyond, the nearest.
    pub fn nice(nice: i8) -> Self {
        let place = usize::try_from(i32::from(nice.clamp(-20, 19)) + 20).unwrap_or(0);
        Self {
            weight: WEIGHTS.get(place).copied().unwrap_or(UNIT),
            slice: Self::SLICE,
        }
    }
}

const UNIT: u32 = 1024;

#[derive(Debug)]
pub(super) struct FairEntity {
    pub(super) fair: Fair,
    pub(super) home: Option<CpuIndex>,
    runtime: i64,
    deadline: i64,
    /// By how much it was behind (positive) or ahead when it blocked.
    lag: i64,
}

impl FairEntity {
    pub(super) const fn new(fair: Fair) -> Self {
        Self {
            fair,
            home: None,
            runtime: 0,
            deadline: 0,
            lag: 0,
        }
    }

    fn virtual_span(&self, real: Span) -> i64 {
        let ns = u128::from(real.as_ns()) * u128::from(UNIT) / u128::from(self.fair.weight.max(1));
        i64::try_from(ns).unwrap_or(i64::MAX)
    }

    /// It yields: others go before it that are due within its next slice.
    pub(super) fn go_behind(&mut self) {
        let slice = self.virtual_span(self.fair.slice);
        self.deadline = self.deadline.saturating_add(slice);
    }

    fn weight(&self) -> i128 {
        i128::from(self.fair.weight)
    }

    pub(super) fn left_of_slice(&self) -> Span {
        let left = u128::try_from(self.deadline.saturating_sub(self.runtime)).unwrap_or(0);
        let ns = (left * u128::from(self.fair.weight)).div_ceil(u128::from(UNIT));
        Span::from_ns(u64::try_from(ns).unwrap_or(u64::MAX).max(1))
    }
}

#[derive(Debug, Default)]
pub(super) struct FairQueue {
    tasks: BTreeSet<(i64, i64, TaskIndex)>,
    weights: i128,
    weighted_runtimes: i128,
    /// The average when the last task left.
    last_average: i64,
    /// Tasks here, the running one among them.
    pub(super) count: usize,
}

impl FairQueue {
    fn average(&self) -> i64 {
        if self.weights == 0 {
            return self.last_average;
        }
        i64::try_from(self.weighted_runtimes.div_euclid(self.weights)).unwrap_or(i64::MAX)
    }

    pub(super) fn joins(&mut self, entity: &mut FairEntity) {
        // Its own weight will move the average towards it; what it is behind must be the same
        // after.
        let lag = if self.weights == 0 {
            0
        } else {
            let all = self.weights + entity.weight();
            i64::try_from(i128::from(entity.lag) * all / self.weights).unwrap_or(0)
        };
        entity.runtime = self.average().saturating_sub(lag);
        entity.deadline = entity
            .runtime
            .saturating_add(entity.virtual_span(entity.fair.slice));
        self.weights += entity.weight();
        self.weighted_runtimes += entity.weight() * i128::from(entity.runtime);
        self.count += 1;
    }

    pub(super) fn leaves(&mut self, entity: &mut FairEntity) {
        let average = self.average();
        let most = entity.virtual_span(entity.fair.slice * 2);
        entity.lag = average.saturating_sub(entity.runtime).clamp(-most, most);
        self.weights -= entity.weight();
        self.weighted_runtimes -= entity.weight() * i128::from(entity.runtime);
        self.count -= 1;
        self.last_average = average;
    }

    pub(super) fn charge(&mut self, entity: &mut FairEntity, ran: Span) {
        let more = entity.virtual_span(ran);
        entity.runtime = entity.runtime.saturating_add(more);
        self.weighted_runtimes += entity.weight() * i128::from(more);
        if entity.runtime >= entity.deadline {
            let slice = entity.virtual_span(entity.fair.slice).max(1);
            entity.deadline = entity.runtime.saturating_add(slice);
        }
    }

    pub(super) fn insert(&mut self, entity: &FairEntity, task: TaskIndex) {
        self.tasks.insert((entity.deadline, entity.runtime, task));
    }

    pub(super) fn remove(&mut self, entity: &FairEntity, task: TaskIndex) {
        self.tasks.remove(&(entity.deadline, entity.runtime, task));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }

    pub(super) fn last(&self) -> Option<TaskIndex> {
        self.tasks.last().map(|&(.., task)| task)
    }

    pub(super) fn take(&mut self) -> Option<TaskIndex> {
        let is_eligible =
            |runtime: i64| i128::from(runtime) * self.weights <= self.weighted_runtimes;
        let picked = self
            .tasks
            .iter()
            .find(|&&(_, runtime, _)| is_eligible(runtime))
            .or_else(|| self.tasks.first())
            .copied()?;
        self.tasks.remove(&picked);
        Some(picked.2)
    }

    /// A task that has just become ready goes before one that runs only if its slice is shorter,
    /// its deadline earlier, and it is eligible.
    pub(super) fn preempts(&self, ready: &FairEntity, running: &FairEntity) -> bool {
        ready.fair.slice < running.fair.slice
            && ready.deadline < running.deadline
            && i128::from(ready.runtime) * self.weights <= self.weighted_runtimes
    }

    pub(super) fn slice_ends(entity: &FairEntity, now: Instant) -> Instant {
        now + entity.left_of_slice()
    }
}
