use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;

use onbeat_model::{
    Actuator, Bandwidth, Boost, Capacity, Instant, Refusal, Reservation, Span, Speed, Speeds,
    Standing, TaskId,
};

use crate::processor::Processor;
use crate::world::Clock;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Asked {
    Reserve(TaskId, Reservation),
    Release(TaskId),
    Ended(TaskId),
    Boost(TaskId, Option<Boost>),
}

/// Admits up to its capacity, unless it was told to refuse.
#[derive(Default)]
pub(crate) struct Kernel {
    pub(crate) cpus: u32,
    pub(crate) admissible: Bandwidth,
    pub(crate) answers: BTreeMap<u32, VecDeque<Refusal>>,
    pub(crate) quotas: BTreeMap<u32, Bandwidth>,
    pub(crate) boost_answers: VecDeque<Result<(), Refusal>>,
    pub(crate) boosted: BTreeMap<TaskId, Boost>,
    pub(crate) release_answers: VecDeque<Refusal>,
    pub(crate) taken_over_at: Option<(u32, Instant)>,
    pub(crate) asked: Vec<(Instant, Asked)>,
    pub(crate) held: BTreeMap<TaskId, Reservation>,
    pub(crate) most_held: Bandwidth,
    /// The capacity that others take, and the time until which they do.
    pub(crate) others: (Bandwidth, Instant),
    /// Nothing can be done about its speed unless it is there.
    pub(crate) processor: Option<Rc<Processor>>,
    pub(crate) waits: Option<Waits>,
    pub(crate) raised: Rc<RefCell<BTreeSet<TaskId>>>,
    pub(crate) clock: Clock,
}

/// How long a burst of a thread waits for a CPU, which depends on whether it is raised.
pub(crate) type Waits = Rc<dyn Fn(bool) -> Span>;

impl Kernel {
    pub(crate) fn with_cpus(cpus: u32) -> Self {
        Self {
            cpus,
            admissible: Bandwidth::from_cpus(f64::from(cpus) * 0.95),
            ..Self::default()
        }
    }

    pub(crate) fn on(processor: Processor) -> (Self, Rc<Processor>) {
        let processor = Rc::new(processor);
        let mut kernel = Self::with_cpus(1);
        kernel.processor = Some(Rc::clone(&processor));
        (kernel, processor)
    }

    fn sum(&self) -> Bandwidth {
        self.held.values().map(Reservation::bandwidth).sum()
    }
}

impl Actuator for Kernel {
    fn reserve(&mut self, task: TaskId, reservation: Reservation) -> Result<(), Refusal> {
        let now = self.clock.get();
        self.asked.push((now, Asked::Reserve(task, reservation)));
        let answer = self
            .answers
            .get_mut(&task.tid)
            .and_then(VecDeque::pop_front);
        if let Some(refusal) = answer {
            return Err(refusal);
        }
        self.admits(task, reservation)?;
        let mine = self
            .held
            .get(&task)
            .map_or(Bandwidth::ZERO, Reservation::bandwidth);
        let others = if now < self.others.1 {
            self.others.0
        } else {
            Bandwidth::ZERO
        };
        if self.sum() - mine + reservation.bandwidth() + others > self.admissible {
            return Err(Refusal::NoRoom {
                wanted: reservation.bandwidth(),
                advice: "somebody else holds the rest".to_owned(),
            });
        }
        self.boosted.remove(&task);
        self.held.insert(task, reservation);
        self.most_held = self.most_held.max(self.sum());
        Ok(())
    }

    fn admits(&self, task: TaskId, reservation: Reservation) -> Result<(), Refusal> {
        match self.quotas.get(&task.tid) {
            Some(&left) if reservation.bandwidth() > left => Err(Refusal::OverQuota {
                left,
                advice: "that is its quota".to_owned(),
            }),
            _ => Ok(()),
        }
    }

    fn boost(&mut self, task: TaskId, boost: Option<Boost>) -> Result<(), Refusal> {
        self.asked
            .push((self.clock.get(), Asked::Boost(task, boost)));
        self.boost_answers.pop_front().unwrap_or(Ok(()))?;
        self.boosted.remove(&task);
        self.boosted.extend(boost.map(|boost| (task, boost)));
        *self.raised.borrow_mut() = self.boosted.keys().copied().collect();
        Ok(())
    }

    fn release(&mut self, task: TaskId) -> Result<(), Refusal> {
        self.asked.push((self.clock.get(), Asked::Release(task)));
        if let Some(refusal) = self.release_answers.pop_front() {
            return Err(refusal);
        }
        self.held.remove(&task);
        Ok(())
    }

    fn standing(&mut self, task: TaskId) -> Standing {
        match self.taken_over_at {
            Some((tid, at)) if tid == task.tid && at <= self.clock.get() => Standing::TakenOver,
            _ => self
                .held
                .get(&task)
                .map_or(Standing::Own, |&r| Standing::Held(r)),
        }
    }

    fn ended(&mut self, task: TaskId) {
        self.asked.push((self.clock.get(), Asked::Ended(task)));
        self.held.remove(&task);
    }

    fn capacity(&self) -> Capacity {
        Capacity {
            cpus: self.cpus,
            admissible: self.admissible,
            shortest_runtime: Span::from_ns(1024),
            shortest_period: Span::from_us(100),
            longest_period: Span::from_secs(4),
        }
    }

    fn speeds(&self) -> Option<Speeds> {
        self.processor.as_ref().map(|processor| processor.speeds())
    }

    fn set_speed(&mut self, speed: Speed) -> Result<(), Refusal> {
        let processor = self.processor.as_ref().ok_or(Refusal::Gone)?;
        processor.set(speed, self.clock.get())
    }

    fn release_speed(&mut self) -> Result<(), Refusal> {
        let processor = self.processor.as_ref().ok_or(Refusal::Gone)?;
        processor.released.set(true);
        Ok(())
    }
}
