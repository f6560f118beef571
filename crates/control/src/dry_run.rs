//! An actuator that changes nothing: it admits and remembers as the kernel would, so that a dry run
//! decides and logs what a real one does.

use std::collections::BTreeMap;

use onbeat_model::{Actuator, Bandwidth, Boost, Capacity, Refusal, Reservation, Standing, TaskId};

#[derive(Clone, Debug)]
pub struct DryRun {
    capacity: Capacity,
    held: BTreeMap<TaskId, Reservation>,
}

impl DryRun {
    #[must_use]
    pub const fn new(capacity: Capacity) -> Self {
        Self {
            capacity,
            held: BTreeMap::new(),
        }
    }

    pub fn held(&self) -> impl Iterator<Item = (TaskId, Reservation)> {
        self.held.iter().map(|(&task, &r)| (task, r))
    }
}

impl Actuator for DryRun {
    fn reserve(&mut self, task: TaskId, reservation: Reservation) -> Result<(), Refusal> {
        let others: Bandwidth = self
            .held
            .iter()
            .filter(|&(&other, _)| other != task)
            .map(|(_, r)| r.bandwidth())
            .sum();
        let wanted = reservation.bandwidth();
        if others + wanted > self.capacity.admissible {
            return Err(Refusal::NoRoom {
                wanted,
                advice: format!("{others} are held already"),
            });
        }
        self.held.insert(task, reservation);
        Ok(())
    }

    fn release(&mut self, task: TaskId) -> Result<(), Refusal> {
        self.held.remove(&task);
        Ok(())
    }

    fn standing(&mut self, task: TaskId) -> Standing {
        self.held
            .get(&task)
            .map_or(Standing::Own, |&r| Standing::Held(r))
    }

    fn boost(&mut self, _task: TaskId, _boost: Option<Boost>) -> Result<(), Refusal> {
        Ok(())
    }

    fn ended(&mut self, task: TaskId) {
        self.held.remove(&task);
    }

    fn capacity(&self) -> Capacity {
        self.capacity
    }
}

#[cfg(test)]
mod tests {
    use onbeat_model::Span;

    use super::*;

    #[test]
    fn it_admits_what_the_kernel_would_and_gives_back_what_it_was_told_to() {
        let mut dry = DryRun::new(Capacity {
            cpus: 1,
            admissible: Bandwidth::from_cpus(0.95),
            shortest_runtime: Span::from_ns(1024),
            shortest_period: Span::from_us(100),
            longest_period: Span::from_secs(4),
        });
        let (a, b) = (TaskId::recorded(1), TaskId::recorded(2));
        let of = |ms| Reservation::implicit(Span::from_ms(ms), Span::from_ms(100)).unwrap();
        assert_eq!(dry.reserve(a, of(60)), Ok(()));
        assert!(matches!(
            dry.reserve(b, of(40)),
            Err(Refusal::NoRoom { .. })
        ));
        assert_eq!(dry.reserve(a, of(50)), Ok(()));
        assert_eq!(dry.reserve(b, of(40)), Ok(()));
        assert_eq!(dry.standing(b), Standing::Held(of(40)));
        assert_eq!(dry.release(a), Ok(()));
        dry.ended(b);
        assert_eq!(dry.held().count(), 0);
        assert_eq!(dry.standing(a), Standing::Own);
    }
}
