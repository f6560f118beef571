//! The loop's hand on the scheduler `reserve`: each thread that it reserves for is a group of its
//! own.
//!
//! The reservations live in the scheduler and nowhere else: no attribute of a thread is changed,
//! and when the scheduler ends, however it does, all threads are back with the kernel's own. So
//! there is no state file, and nothing for `onbeat restore` to do.

use std::collections::HashMap;

use onbeat_act::attributes::{Attributes, Policy};
use onbeat_act::{kernel, task};
use onbeat_model::{Actuator, Bandwidth, Capacity, Refusal, Reservation, Standing, TaskId};

use super::{
    LONGEST_PERIOD, Refused, Reservations, SHORTEST_PERIOD, SHORTEST_RUNTIME, Whom, start,
};
use crate::Running;

#[derive(Debug)]
pub struct GroupActuator {
    running: Running,
    reservations: Reservations,
    capacity: Capacity,
    held: HashMap<TaskId, Reservation>,
}

impl GroupActuator {
    pub fn start() -> Result<Self, crate::Error> {
        let capacity = Capacity {
            shortest_runtime: SHORTEST_RUNTIME,
            shortest_period: SHORTEST_PERIOD,
            longest_period: LONGEST_PERIOD,
            admissible: admissible(),
            ..kernel::capacity()
        };
        Ok(Self {
            running: start()?,
            reservations: Reservations::default(),
            capacity,
            held: HashMap::new(),
        })
    }

    /// Checks the thread's present scheduling; an error if the scheduler does not get to schedule
    /// it.
    fn look(&self, task: TaskId) -> Result<(), Refusal> {
        let now = Attributes::get(task.tid).ok();
        let Some(now) = now.filter(|_| task::is_alive(task)) else {
            return Err(Refusal::Gone);
        };
        match now.policy {
            Policy::Other(_) | Policy::Batch(_) | Policy::Idle(_) | Policy::Ext(_) => Ok(()),
            _ => Err(Refusal::TakenOver {
                now: now.to_string(),
            }),
        }
    }
}

/// The bandwidth that the scheduler can hand out: the limit of SCHED_DEADLINE less its
/// reservations, because it comes first.
#[must_use]
pub(super) fn admissible() -> Bandwidth {
    kernel::capacity().admissible - kernel::reserved()
}

impl Actuator for GroupActuator {
    fn reserve(&mut self, task: TaskId, reservation: Reservation) -> Result<(), Refusal> {
        if let Err(refusal) = self.look(task) {
            if refusal == Refusal::Gone {
                self.ended(task);
            }
            return Err(refusal);
        }
        self.reservations
            .set(&mut self.running, Whom::Thread(task.tid), reservation)
            .map_err(|refused| match refused {
                Refused::NoRoom {
                    wanted,
                    free,
                    limit,
                } => Refusal::NoRoom {
                    wanted,
                    advice: format!("{free} of {limit} is free through sched_ext"),
                },
                Refused::Nobody(_) => Refusal::Gone,
                other => Refusal::Other(other.to_string()),
            })?;
        self.held.insert(task, reservation);
        Ok(())
    }

    fn release(&mut self, task: TaskId) -> Result<(), Refusal> {
        if self.held.remove(&task).is_none() {
            return Ok(());
        }
        match self
            .reservations
            .remove(&mut self.running, Whom::Thread(task.tid))
        {
            // It has given everything back.
            Ok(()) | Err(Refused::Ended(_)) => Ok(()),
            Err(error) => Err(Refusal::Other(error.to_string())),
        }
    }

    fn standing(&mut self, task: TaskId) -> Standing {
        let Some(&reservation) = self.held.get(&task) else {
            return match self.look(task) {
                Err(Refusal::Gone) => Standing::Gone,
                _ => Standing::Own,
            };
        };
        match self.look(task) {
            Ok(()) if self.running.outcome().is_none() => Standing::Held(reservation),
            Ok(()) => Standing::Own,
            Err(Refusal::Gone) => {
                self.ended(task);
                Standing::Gone
            }
            Err(_) => Standing::TakenOver,
        }
    }

    fn ended(&mut self, task: TaskId) {
        if self.held.remove(&task).is_some() {
            // No later thread gets it with the same number; this frees its bandwidth.
            let _ = self
                .reservations
                .remove(&mut self.running, Whom::Thread(task.tid));
        }
    }

    fn capacity(&self) -> Capacity {
        self.capacity
    }

    fn measure(&mut self) {
        let cpus = kernel::capacity().cpus;
        if cpus != self.capacity.cpus {
            self.capacity.cpus = cpus;
            self.capacity.admissible = admissible();
        }
        // Where the kernel has ended the scheduler, the next reservation tells.
        let _ = self.reservations.fit(&mut self.running);
    }
}
