//! The machine's clock and its timers, and what a policy may ask for.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use onbeat_model::Instant;

use crate::{CpuIndex, TaskIndex};

/// The calendar of a policy: the time, timers, and a bell for each CPU.
///
/// Timers of one instant fire in this order: the policy's by their token, then the tasks' by their
/// number. So the order does not depend on when they were set.
#[derive(Debug)]
pub struct Calendar {
    now: Instant,
    timers: BinaryHeap<Reverse<u128>>,
    /// The CPUs to be scheduled anew, each once.
    wanted: BinaryHeap<Reverse<CpuIndex>>,
    is_wanted: Vec<bool>,
    exhausted: VecDeque<TaskIndex>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Timer {
    Policy(u64),
    Task(TaskIndex),
}

const TASK: u64 = 1 << 63;

impl Calendar {
    pub(super) fn new(cpus: usize) -> Self {
        Self {
            now: Instant::ZERO,
            timers: BinaryHeap::new(),
            wanted: BinaryHeap::new(),
            is_wanted: vec![false; cpus],
            exhausted: VecDeque::new(),
        }
    }

    pub const fn now(&self) -> Instant {
        self.now
    }

    /// [`Policy::timer`](crate::Policy::timer) is called with `token` at `at`, or now if that is
    /// over. The highest bit of a token is not kept. A timer cannot be taken back: a policy that no
    /// longer wants one must know it by its time.
    pub fn set_timer(&mut self, at: Instant, token: u64) {
        self.set(at, token & !TASK);
    }

    /// `cpu` is scheduled anew after all events of this instant.
    pub fn reschedule(&mut self, cpu: CpuIndex) {
        if !std::mem::replace(&mut self.is_wanted[cpu], true) {
            self.wanted.push(Reverse(cpu));
        }
    }

    pub fn tell_exhausted(&mut self, task: TaskIndex) {
        self.exhausted.push_back(task);
    }

    pub(super) fn set_task_timer(&mut self, at: Instant, task: TaskIndex) {
        self.set(at, TASK | task as u64);
    }

    fn set(&mut self, at: Instant, order: u64) {
        let key = u128::from(at.max(self.now).as_ns()) << 64 | u128::from(order);
        self.timers.push(Reverse(key));
    }

    pub(super) fn advance(&mut self, now: Instant) {
        self.now = self.now.max(now);
    }

    pub(super) fn next_timer(&self) -> Option<Instant> {
        let Reverse(key) = self.timers.peek()?;
        Some(Instant::from_ns((key >> 64) as u64))
    }

    pub(super) fn due(&mut self) -> Option<Timer> {
        self.next_timer().filter(|&at| at <= self.now)?;
        let Reverse(key) = self.timers.pop()?;
        let order = key as u64;
        Some(if order & TASK == 0 {
            Timer::Policy(order)
        } else {
            Timer::Task((order & !TASK) as usize)
        })
    }

    pub(super) fn next_to_schedule(&mut self) -> Option<CpuIndex> {
        let Reverse(cpu) = self.wanted.pop()?;
        self.is_wanted[cpu] = false;
        Some(cpu)
    }

    pub(super) fn next_exhausted(&mut self) -> Option<TaskIndex> {
        self.exhausted.pop_front()
    }
}
