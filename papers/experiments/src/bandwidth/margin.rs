//! An actuator that gives what a method asks for and a margin more, and knows how much is reserved.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use onbeat_model::{
    Actuator, Bandwidth, Boost, Capacity, Refusal, Reservation, Span, Speed, Speeds, Standing,
    TaskId,
};

#[derive(Debug, Default)]
struct Given(BTreeMap<TaskId, (Reservation, Bandwidth)>);

#[derive(Clone, Debug, Default)]
pub(super) struct Reserved(Rc<RefCell<Given>>);

impl Reserved {
    /// In CPUs, of all tasks.
    pub(super) fn cpus(&self) -> f64 {
        let given = self.0.borrow();
        given
            .0
            .values()
            .map(|(_, bandwidth)| bandwidth.as_cpus())
            .sum()
    }
}

pub(super) struct MarginActuator<A> {
    inner: A,
    factor: f64,
    reserved: Reserved,
}

impl<A: Actuator> MarginActuator<A> {
    pub(super) fn new(inner: A, margin: f64, reserved: Reserved) -> Self {
        Self {
            inner,
            factor: 1.0 + margin,
            reserved,
        }
    }

    fn with_margin(&self, asked: Reservation) -> Reservation {
        let shortest = Span::from_ns(1024);
        let runtime = asked.runtime().scale(self.factor);
        let runtime = runtime.max(shortest).min(asked.deadline());
        Reservation::new(runtime, asked.deadline(), asked.period()).unwrap_or(asked)
    }

    fn forget(&mut self, task: TaskId) {
        self.reserved.0.borrow_mut().0.remove(&task);
    }
}

impl<A: Actuator> Actuator for MarginActuator<A> {
    fn reserve(&mut self, task: TaskId, asked: Reservation) -> Result<(), Refusal> {
        let given = self.with_margin(asked);
        self.inner.reserve(task, given)?;
        let mut reserved = self.reserved.0.borrow_mut();
        reserved.0.insert(task, (asked, given.bandwidth()));
        Ok(())
    }

    fn release(&mut self, task: TaskId) -> Result<(), Refusal> {
        self.inner.release(task)?;
        self.forget(task);
        Ok(())
    }

    /// The method is told that what it asked for is in force.
    fn standing(&mut self, task: TaskId) -> Standing {
        let asked = self
            .reserved
            .0
            .borrow()
            .0
            .get(&task)
            .map(|&(asked, _)| asked);
        match (self.inner.standing(task), asked) {
            (Standing::Held(_), Some(asked)) => Standing::Held(asked),
            (standing, _) => standing,
        }
    }

    fn boost(&mut self, task: TaskId, boost: Option<Boost>) -> Result<(), Refusal> {
        self.inner.boost(task, boost)
    }

    fn ended(&mut self, task: TaskId) {
        self.inner.ended(task);
        self.forget(task);
    }

    fn capacity(&self) -> Capacity {
        self.inner.capacity()
    }

    fn speeds(&self) -> Option<Speeds> {
        self.inner.speeds()
    }

    fn set_speed(&mut self, speed: Speed) -> Result<(), Refusal> {
        self.inner.set_speed(speed)
    }
}
