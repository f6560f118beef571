//! A policy of `schedulers/` on the simulated machine: one queue for all CPUs, in the order of its
//! keys.
//!
//! It is the twin of the sched_ext scheduler with the same rules: that one has a dispatch queue in
//! the same order, and sends a CPU to it when a task becomes ready, blocks or has run for its
//! slice. No simulated workload needs the rest of that one, at ticks, for tasks that others
//! displaced and where programs fork.

use std::collections::BTreeSet;
use std::ops::Bound::{Excluded, Unbounded};

use onbeat_model::{Instant, Span};
use onbeat_policies::{Rules, Structures};

use super::{Policy, Slice, at_a_tick};
use crate::machine::Calendar;
use crate::{CpuIndex, TaskIndex, Work};

#[derive(Debug)]
pub struct Ruled<S: Structures> {
    rules: Rules<S>,
    tasks: Vec<S::Task>,
    /// The tasks that are ready, by key, then by arrival.
    queue: BTreeSet<(u64, u64, TaskIndex)>,
    arrivals: u64,
    cpus: Vec<RuledCpu>,
    tick: Span,
}

#[derive(Clone, Copy, Debug, Default)]
struct RuledCpu {
    task: Option<TaskIndex>,
    charged_to: Instant,
    /// It is about to pick, for a task with this key that became ready at this instant.
    called_for: Option<u64>,
}

impl<S: Structures> Ruled<S> {
    /// A scheduler for `cpus` CPUs and tasks of this niceness, none of which is ready. The machine
    /// must be given the tasks in the same order.
    pub fn new(mut rules: Rules<S>, cpus: usize, nices: impl IntoIterator<Item = i8>) -> Self {
        let nices = nices.into_iter();
        let tasks = nices.map(|nice| rules.join(nice, Instant::ZERO)).collect();
        Self {
            rules,
            tasks,
            queue: BTreeSet::new(),
            arrivals: 0,
            cpus: vec![RuledCpu::default(); cpus],
            tick: Span::ZERO,
        }
    }

    /// The same where slices end at multiples of `tick` alone, as at a kernel's; zero: exactly.
    pub const fn ticking(mut self, tick: Span) -> Self {
        self.tick = tick;
        self
    }

    pub fn task(&self, task: TaskIndex) -> &S::Task {
        &self.tasks[task]
    }

    fn enqueue(&mut self, task: TaskIndex, now: Instant) -> u64 {
        let key = self.rules.key(&self.tasks[task], now);
        self.queue.insert((key, self.arrivals, task));
        self.arrivals += 1;
        key
    }

    /// The key of what `cpu` runs, charged as far as the clock is, or will run at this instant.
    fn present_key(&mut self, cpu: CpuIndex, now: Instant) -> Option<u64> {
        let RuledCpu {
            task,
            charged_to,
            called_for,
        } = self.cpus[cpu];
        if called_for.is_some() {
            return called_for;
        }
        let mut task = self.tasks[task?];
        self.rules.charge(&mut task, now.since(charged_to), now);
        Some(self.rules.key(&task, now))
    }
}

impl<S: Structures> Policy for Ruled<S> {
    fn ready(&mut self, task: TaskIndex, calendar: &mut Calendar) {
        let now = calendar.now();
        self.rules.wakeup(&mut self.tasks[task], now);
        let key = self.enqueue(task, now);
        let keys = (0..self.cpus.len()).map(|cpu| (self.present_key(cpu, now), cpu));
        let keys = keys.map(|(key, cpu)| (key.is_none(), key, std::cmp::Reverse(cpu)));
        // The first that is idle, or else the one with what is last in line.
        if let Some((is_idle, running, std::cmp::Reverse(cpu))) = keys.max()
            && (is_idle || running > Some(key))
        {
            self.cpus[cpu].called_for = Some(key);
            calendar.reschedule(cpu);
        }
    }

    fn blocked(&mut self, task: TaskIndex, cpu: CpuIndex, calendar: &mut Calendar) {
        self.cpus[cpu].task = None;
        self.rules.block(&mut self.tasks[task], calendar.now());
    }

    fn put_back(&mut self, task: TaskIndex, cpu: CpuIndex, calendar: &mut Calendar) {
        self.cpus[cpu].task = None;
        let key = self.rules.key(&self.tasks[task], calendar.now());
        let after = (Excluded((key, u64::MAX, TaskIndex::MAX)), Unbounded);
        let behind = self.queue.range(after).next().map(|&(key, ..)| key);
        self.rules
            .put_back(&mut self.tasks[task], behind, calendar.now());
        self.enqueue(task, calendar.now());
    }

    fn pick(&mut self, cpu: CpuIndex, calendar: &mut Calendar) -> Option<TaskIndex> {
        self.cpus[cpu].called_for = None;
        let (.., task) = self.queue.pop_first()?;
        self.rules.pick(&mut self.tasks[task], calendar.now());
        self.cpus[cpu] = RuledCpu {
            task: Some(task),
            charged_to: calendar.now(),
            called_for: None,
        };
        Some(task)
    }

    fn slice(&mut self, task: TaskIndex, _cpu: CpuIndex, now: Instant) -> Slice {
        let ends = now + self.rules.slice(&self.tasks[task], now);
        Slice {
            until: Some(at_a_tick(ends, self.tick)),
            work: None,
        }
    }

    fn knows_jobs(&self) -> bool {
        false
    }

    fn charge(
        &mut self,
        task: TaskIndex,
        cpu: CpuIndex,
        ran: Span,
        _work: Work,
        calendar: &mut Calendar,
    ) {
        self.cpus[cpu].charged_to = calendar.now();
        self.rules
            .charge(&mut self.tasks[task], ran, calendar.now());
    }

    fn notified(&mut self, task: TaskIndex, calendar: &mut Calendar) {
        self.rules.mdn(&mut self.tasks[task], calendar.now());
    }
}
