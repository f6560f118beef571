//! An actuator that gives what a method asks for and a margin more, and knows how much is reserved.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use onbeat_model::{
    Actuator, Bandwidth, Boost, Capacity, Refusal, Reservation, Span, Standing, TaskId,
};

/// What each task asked for, and the bandwidth that it was given.
#[derive(Clone, Default)]
pub(super) struct Reserved(Rc<RefCell<BTreeMap<TaskId, (Reservation, Bandwidth)>>>);

impl Reserved {
    /// In CPUs, of all tasks.
    pub(super) fn cpus(&self) -> f64 {
        let given = self.0.borrow();
        given.values().map(|(_, given)| given.as_cpus()).sum()
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
}

impl<A: Actuator> Actuator for MarginActuator<A> {
    fn reserve(&mut self, task: TaskId, asked: Reservation) -> Result<(), Refusal> {
        let given = self.with_margin(asked);
        self.inner.reserve(task, given)?;
        let reserved = (asked, given.bandwidth());
        self.reserved.0.borrow_mut().insert(task, reserved);
        Ok(())
    }

    fn release(&mut self, task: TaskId) -> Result<(), Refusal> {
        self.inner.release(task)?;
        self.reserved.0.borrow_mut().remove(&task);
        Ok(())
    }

    /// The method is told that what it asked for is in force.
    fn standing(&mut self, task: TaskId) -> Standing {
        match (
            self.inner.standing(task),
            self.reserved.0.borrow().get(&task),
        ) {
            (Standing::Held(_), Some(&(asked, _))) => Standing::Held(asked),
            (standing, _) => standing,
        }
    }

    fn boost(&mut self, task: TaskId, boost: Option<Boost>) -> Result<(), Refusal> {
        self.inner.boost(task, boost)
    }

    fn ended(&mut self, task: TaskId) {
        self.inner.ended(task);
        self.reserved.0.borrow_mut().remove(&task);
    }

    fn capacity(&self) -> Capacity {
        self.inner.capacity()
    }
}
