//! Reservations for whole processes and control groups, through the scheduler `reserve`: admission,
//! and the maps in which the scheduler finds the groups of tasks.
//!
//! The kernel's own SCHED_DEADLINE gives a reservation to one thread. This scheduler gives one to a
//! group, whose threads live on one budget, on as many CPUs as they like.

mod group;

pub use group::{GroupBudget, GroupReservation, NoBudget, ParseGroupError, Whom};

use onbeat_act::kernel;
use onbeat_model::{Bandwidth, Span};

use crate::{Error, Extent, Opened, Running, find};

/// `RESERVE_GROUPS` of `schedulers/reserve/group.h`.
const SLOTS: usize = 64;

/// The shortest runtime that a timer of the kernel can enforce with some sense.
pub const SHORTEST_RUNTIME: Span = Span::from_us(100);
pub const SHORTEST_PERIOD: Span = Span::from_us(500);
/// `RESERVE_LONGEST_PERIOD_NS` of `schedulers/reserve/policy.h`.
pub const LONGEST_PERIOD: Span = Span::from_secs(4);

/// Why a group has no reservation, or none other than before.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    #[error("no room for {wanted}: {free} of {limit} is free; end a reservation, or ask for less")]
    NoRoom {
        wanted: Bandwidth,
        /// The bandwidth that no reservation holds yet.
        free: Bandwidth,
        /// The most that all reservations together can have.
        limit: Bandwidth,
    },
    /// There is no thread, process or group of that number.
    #[error("there is no {0}")]
    Nobody(Whom),
    #[error("there are {SLOTS} reservations already, and there can be no more: end one")]
    NoSlot,
    /// The times are shorter or longer than the scheduler takes.
    #[error(
        "{0} cannot be enforced: runtimes are {SHORTEST_RUNTIME} to {LONGEST_PERIOD}, periods {SHORTEST_PERIOD} to {LONGEST_PERIOD}"
    )]
    OutOfRange(GroupBudget),
    #[error("the kernel has ended the scheduler ({0}): all reservations through it are gone")]
    Ended(String),
    /// Something that does not fail on a healthy kernel did.
    #[error(transparent)]
    System(#[from] Error),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupUse {
    pub time: Span,
    /// How often its budget was used up.
    pub exhausted: u64,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct ReserveCall {
    slot: u32,
    kind: u32,
    whom: u64,
    runtime_ns: u64,
    deadline_ns: u64,
    period_ns: u64,
    used_ns: u64,
    exhausted: u64,
}

/// Puts the scheduler in force for all ordinary tasks. When it is dropped, all reservations are
/// gone.
pub fn start() -> Result<Running, Error> {
    let scheduler = find("reserve").ok_or(Error::Malformed {
        name: "reserve",
        what: "object",
    })?;
    Opened::new(scheduler)?.start(Extent::Whole, None)
}

/// The reservations of a running scheduler.
#[derive(Debug)]
pub struct Reservations {
    /// The CPUs that are online, and what all reservations together can have of them.
    cpus: u32,
    limit: Bandwidth,
    /// The share of its runtime that each reservation gets: less than all where CPUs have gone.
    part: f64,
    slots: [Option<(Whom, GroupBudget)>; SLOTS],
}

impl Default for Reservations {
    /// None, and room for what the CPUs that are online can give.
    fn default() -> Self {
        Self {
            cpus: kernel::capacity().cpus,
            limit: admissible(),
            part: 1.0,
            slots: [None; SLOTS],
        }
    }
}

impl Reservations {
    fn held_beside(&self, slot: Option<usize>) -> Bandwidth {
        let slots = self.slots.iter().enumerate();
        let others = slots.filter(|&(number, _)| Some(number) != slot);
        others
            .filter_map(|(_, held)| held.map(|(_, budget)| budget.bandwidth()))
            .sum()
    }

    fn slot_of(&self, whom: Whom) -> Option<usize> {
        self.slots
            .iter()
            .position(|held| held.is_some_and(|(holder, _)| holder == whom))
    }

    pub fn groups(&self) -> impl Iterator<Item = (Whom, GroupBudget)> + '_ {
        self.slots.iter().flatten().copied()
    }

    /// Takes in how many CPUs are online now. If the reservations hold more than can be had of
    /// those, each gets the same part of its runtime. Returns that part if it has changed.
    pub fn fit(&mut self, running: &mut Running) -> Result<Option<f64>, Refused> {
        check(running)?;
        let cpus = kernel::capacity().cpus;
        if cpus != self.cpus {
            self.cpus = cpus;
            self.limit = admissible();
        }
        let part = part_of(self.held_beside(None), self.limit);
        let before = std::mem::replace(&mut self.part, part);
        if part != before {
            for slot in 0..SLOTS {
                if let Some(Some((whom, budget))) = self.slots.get(slot).copied() {
                    self.put(running, slot, whom, budget)?;
                }
            }
        }
        Ok((part != before).then_some(part))
    }

    fn put(
        &mut self,
        running: &mut Running,
        slot: usize,
        whom: Whom,
        budget: GroupBudget,
    ) -> Result<(), Refused> {
        let granted = budget.scaled(self.part);
        let (_, answer) = call(running, "set_group", slot, whom, Some(granted))?;
        if answer != 0 {
            call(running, "set_group", slot, whom, None)?;
        }
        if let Some(held) = self.slots.get_mut(slot) {
            *held = (answer == 0).then_some((whom, budget));
        }
        Ok(())
    }

    /// Gives `whom` a reservation, or changes the one that it has; a raised runtime counts from the
    /// next period.
    /// See [`Refused`]; `whom` then has what it had before.
    pub fn set(
        &mut self,
        running: &mut Running,
        whom: Whom,
        budget: GroupBudget,
    ) -> Result<(), Refused> {
        check(running)?;
        let wanted = budget.bandwidth();
        if !(SHORTEST_RUNTIME..=LONGEST_PERIOD).contains(&budget.runtime)
            || !(SHORTEST_PERIOD..=LONGEST_PERIOD).contains(&budget.period)
        {
            return Err(Refused::OutOfRange(budget));
        }
        let own = self.slot_of(whom);
        let free = self.limit - self.held_beside(own);
        if wanted > free {
            let limit = self.limit;
            return Err(Refused::NoRoom {
                wanted,
                free,
                limit,
            });
        }
        let slot = own.or_else(|| self.slots.iter().position(Option::is_none));
        let slot = slot.ok_or(Refused::NoSlot)?;
        self.put(running, slot, whom, budget)?;
        match self.slot_of(whom) {
            Some(_) => Ok(()),
            None => Err(Refused::Nobody(whom)),
        }
    }

    /// The resources that `whom` has used since it had a reservation; none if it has none.
    pub fn used(&self, running: &mut Running, whom: Whom) -> Option<GroupUse> {
        let slot = self.slot_of(whom)?;
        let (call, _) = call(running, "tell_group", slot, whom, None).ok()?;
        Some(GroupUse {
            time: Span::from_ns(call.used_ns),
            exhausted: call.exhausted,
        })
    }
}

/// The share of their runtimes that reservations of `held` together get, where they can have
/// `limit`.
fn part_of(held: Bandwidth, limit: Bandwidth) -> f64 {
    if held <= limit {
        1.0
    } else {
        limit.as_cpus() / held.as_cpus()
    }
}

fn check(running: &Running) -> Result<(), Refused> {
    running
        .outcome()
        .map_or(Ok(()), |outcome| Err(Refused::Ended(outcome.reason)))
}

/// Runs one of the scheduler's own programs, which answers 0 if there is a thread, process or group
/// of that number.
fn call(
    running: &mut Running,
    name: &'static str,
    slot: usize,
    whom: Whom,
    budget: Option<GroupBudget>,
) -> Result<(ReserveCall, u32), Error> {
    let (kind, number) = match whom {
        Whom::Process(pid) => (1, pid.into()),
        Whom::ControlGroup(id) => (2, id),
    };
    let mut call = ReserveCall {
        slot: slot as u32,
        kind,
        whom: number,
        ..ReserveCall::default()
    };
    if let Some(budget) = budget {
        call.runtime_ns = budget.runtime.as_ns();
        call.deadline_ns = budget.deadline.as_ns();
        call.period_ns = budget.period.as_ns();
    }
    // SAFETY: a plain C structure of whole numbers without padding.
    let answer = unsafe { running.call(name, &mut call) }?;
    Ok((call, answer))
}

/// The bandwidth that the scheduler can hand out: the limit of SCHED_DEADLINE less its
/// reservations, because it comes first.
fn admissible() -> Bandwidth {
    kernel::capacity().admissible - kernel::reserved()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reservations_that_hold_too_much_get_the_same_part_of_their_runtimes() {
        let cpus = Bandwidth::from_cpus;
        assert_eq!(part_of(cpus(0.9), cpus(0.95)), 1.0);
        let part = part_of(cpus(1.6), cpus(0.8));
        let ms = Span::from_ms;
        let budget = GroupBudget::new(ms(12), ms(8), ms(10))
            .unwrap()
            .scaled(part);
        assert_eq!(budget, GroupBudget::new(ms(6), ms(8), ms(10)).unwrap());
        let least = GroupBudget::new(SHORTEST_RUNTIME, ms(10), ms(10)).unwrap();
        assert_eq!(least.scaled(0.1), least);
        assert_eq!(part_of(cpus(1.6), Bandwidth::ZERO), 0.0);
    }
}
