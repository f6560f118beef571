//! Makes adjustments of the reservations in force from requests, in their right order.
//!
//! If all requests fit, each that changed is granted whole, up to the cap of one task. If not, all
//! requests are looked at, and compressed. If 100 or more do not fit, this happens in rounds
//! (`overload`).

use std::collections::HashMap;
use std::vec::IntoIter;

use onbeat_decide::supervisor::{self, Grant, Level, Limits, Outcome, Request};
use onbeat_model::{Bandwidth, Instant, Refusal, Reservation, TaskId};

use super::bandwidth;
use super::overload::{self, MANY, OF_MANY, Overload, is_another};
use super::request::same_server;
use super::requests::{Place, RequestTable};
use crate::Why;
use crate::task::table::{Slot, TaskTable};

/// The least raise that is worth a system call if the thread's own request has not changed.
const WORTH_RAISING: f64 = 0.05;

/// All requests, and what has changed about them since the last arbitration.
pub(crate) struct Arbiter {
    pub(super) requests: RequestTable,
    limits: Limits,
    changed: Vec<Slot>,
    pub(super) overload: Overload,
    /// Not every request was granted whole.
    pub(super) is_compressed: bool,
    /// The next arbitration looks at all requests.
    pub(super) is_stale: bool,
}

/// An arbitration under way.
pub(crate) struct Arbitration {
    limits: Limits,
    changed: Vec<Slot>,
    next: usize,
    stage: Stage,
}

enum Stage {
    /// All fits: each that changed is granted whole.
    Each,
    /// Between two rounds under overload: each that changed gets what follows from the level of the
    /// last.
    AtLevel(Level),
    /// All are to be looked at.
    All,
    /// All have been looked at.
    Adjusting {
        adjustments: IntoIter<Adjustment>,
        is_compressed: bool,
    },
}

/// One change to put in force.
pub(crate) struct Adjustment {
    pub(crate) slot: Slot,
    /// The former reservation.
    pub(crate) held: Option<Reservation>,
    pub(crate) target: Option<Reservation>,
    pub(crate) why: Why,
}

/// The treatment of one thread's request before the next round.
enum Answer {
    /// Its reservation stays.
    Nothing,
    /// It waits for the next round.
    Wait,
    /// It gets this reservation now.
    Now(Reservation),
    /// Others would have to give way.
    NoRoom,
}

impl Arbiter {
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            requests: RequestTable::default(),
            limits,
            changed: Vec::new(),
            overload: Overload::default(),
            is_compressed: false,
            is_stale: false,
        }
    }

    pub(crate) const fn limits(&self) -> &Limits {
        &self.limits
    }

    pub(crate) fn set_limits(&mut self, limits: Limits) {
        self.limits = limits;
        self.is_stale = true;
    }

    /// Has the next arbitration look at all requests.
    pub(crate) const fn look_at_all(&mut self) {
        self.is_stale = true;
    }

    pub(crate) const fn has_changes(&self) -> bool {
        !self.changed.is_empty()
    }

    /// The threads whose requests changed since the last arbitration.
    pub(crate) fn changed(&self) -> &[Slot] {
        &self.changed
    }

    /// Many requests do not fit.
    pub(crate) const fn is_overloaded(&self) -> bool {
        self.overload.level().is_some()
    }

    pub(crate) fn requests(&self) -> &[Request] {
        self.requests.requests()
    }

    /// The slot of the thread whose request is at `place`.
    pub(crate) fn slot(&self, place: Place) -> Option<Slot> {
        self.requests.slot(place)
    }

    pub(crate) fn request(&self, place: Place) -> Option<&Request> {
        self.requests.request(place)
    }

    /// Settles the thread's request in this turn. If there are several reasons, the last one
    /// counts, but a change of demand counts only alone.
    pub(crate) fn ask(&mut self, tasks: &mut TaskTable, slot: Slot, why: Why) {
        let Some(thread) = tasks.get_mut(slot) else {
            return;
        };
        if thread.asked.is_none() || thread.waits {
            self.changed.push(slot);
        }
        thread.waits = false;
        match &thread.asked {
            None => thread.asked = Some(why),
            Some(_) if matches!(why, Why::Demand { .. }) => {}
            Some(_) => thread.asked = Some(why),
        }
    }

    /// Forgets the thread in `slot`.
    pub(crate) fn forget(&mut self, slot: Slot) {
        self.changed.retain(|&other| other != slot);
        self.overload.forget(slot);
    }

    /// Tests whether `wanted` fits whole beside the reservations promised to others.
    ///
    /// # Errors
    /// With [`Refusal::NoRoom`] if it does not.
    pub(crate) fn admits(&self, slot: Slot, wanted: Reservation) -> Result<(), Refusal> {
        let bandwidth = wanted.bandwidth();
        if bandwidth > self.limits.per_task {
            return Err(Refusal::NoRoom {
                wanted: bandwidth,
                advice: format!("no task may have more than {}", self.limits.per_task),
            });
        }
        let others: Bandwidth = (0..self.requests.requests().len())
            .filter(|&place| self.requests.slot(place) != Some(slot))
            .filter_map(|place| Some(self.requests.request(place)?.least))
            .sum();
        if others + bandwidth > self.limits.total {
            return Err(Refusal::NoRoom {
                wanted: bandwidth,
                advice: format!(
                    "{others} of {} is held by others already: ask for less, or end another reservation",
                    self.limits.total
                ),
            });
        }
        Ok(())
    }

    /// Begins an arbitration, if one is due. No more than `admitted` is handed out, if the kernel
    /// has admitted no more.
    pub(crate) fn begin(
        &mut self,
        tasks: &TaskTable,
        admitted: Option<Bandwidth>,
        now: Instant,
    ) -> Option<Arbitration> {
        let limits = Limits {
            total: self.limits.total.min(admitted.unwrap_or(self.limits.total)),
            ..self.limits
        };
        let fits = self.requests.sum() <= limits.total;
        let all = self.is_stale || self.overload.is_due(now, fits);
        if self.changed.is_empty() && !all {
            return None;
        }
        let mut changed = std::mem::take(&mut self.changed);
        let stage = match self.overload.level() {
            _ if all => Stage::All,
            Some(level) => Stage::AtLevel(level),
            None if self.is_compressed || !fits => Stage::All,
            None => {
                // Reservations that shrink come first, so that there is room for the others at any
                // moment.
                changed.sort_by_key(|&slot| self.raises(tasks, slot));
                Stage::Each
            }
        };
        Some(Arbitration {
            limits,
            changed,
            next: 0,
            stage,
        })
    }

    /// The next adjustment. `in_force` is the present sum of all reservations.
    pub(crate) fn next(
        &mut self,
        arbitration: &mut Arbitration,
        tasks: &mut TaskTable,
        in_force: Bandwidth,
        now: Instant,
    ) -> Option<Adjustment> {
        loop {
            match &mut arbitration.stage {
                Stage::Each => {
                    let slot = arbitration.next_changed()?;
                    let adjustment = self.grant(tasks, slot, &arbitration.limits);
                    if adjustment.is_some() {
                        return adjustment;
                    }
                }
                Stage::AtLevel(level) => {
                    let level = *level;
                    let slot = arbitration.next_changed()?;
                    let answer = self.answer(tasks, slot, level, (&arbitration.limits, in_force));
                    let Some(thread) = tasks.get_mut(slot) else {
                        continue;
                    };
                    let held = thread.held();
                    match answer {
                        Answer::Nothing => thread.asked = None,
                        Answer::Wait => {
                            thread.waits = true;
                            self.overload.wait(slot);
                        }
                        Answer::Now(target) => {
                            if let Some(why) = thread.asked.take() {
                                return Some(Adjustment {
                                    slot,
                                    held,
                                    target: Some(target),
                                    why,
                                });
                            }
                        }
                        Answer::NoRoom => arbitration.stage = Stage::All,
                    }
                }
                Stage::All => {
                    arbitration.stage = self.all(tasks, &arbitration.limits, in_force, now);
                }
                Stage::Adjusting { adjustments, .. } => return adjustments.next(),
            }
        }
    }

    /// Ends the arbitration.
    pub(crate) fn end(&mut self, arbitration: Arbitration, tasks: &mut TaskTable) {
        let Stage::Adjusting { is_compressed, .. } = arbitration.stage else {
            return;
        };
        self.is_compressed = is_compressed;
        let waited = self.overload.take_waiting();
        for slot in arbitration.changed.into_iter().chain(waited) {
            if let Some(thread) = tasks.get_mut(slot) {
                thread.waits = false;
                thread.asked = None;
            }
        }
    }

    fn raises(&self, tasks: &TaskTable, slot: Slot) -> bool {
        tasks.get(slot).is_some_and(|thread| {
            let request = thread.place.and_then(|place| self.requests.request(place));
            bandwidth(request.map(|request| request.wanted)) > bandwidth(thread.held())
        })
    }

    /// Grants the thread's request whole.
    fn grant(&self, tasks: &mut TaskTable, slot: Slot, limits: &Limits) -> Option<Adjustment> {
        let thread = tasks.get_mut(slot)?;
        let (place, why) = (thread.place, thread.asked.take());
        let request = self.requests.request(place?)?;
        let outcome = supervisor::arbitrate(std::slice::from_ref(request), limits);
        let grant = outcome.grants.first()?;
        Some(Adjustment {
            slot,
            held: thread.held(),
            target: grant.reservation,
            why: why?,
        })
    }

    fn answer(
        &self,
        tasks: &TaskTable,
        slot: Slot,
        level: Level,
        (limits, in_force): (&Limits, Bandwidth),
    ) -> Answer {
        let thread = tasks.get(slot);
        let request = thread.and_then(|thread| self.requests.request(thread.place?));
        let (Some(thread), Some(request)) = (thread, request) else {
            return Answer::Nothing;
        };
        let (held, grant) = (thread.held(), level.grant(request, limits).reservation);
        let Some(target) = grant else {
            return Answer::Wait;
        };
        if is_small(held, grant) {
            return Answer::Nothing;
        }
        if bandwidth(grant) <= bandwidth(held) && !is_another(held, grant) {
            return Answer::Wait;
        }
        if in_force - bandwidth(held) + target.bandwidth() > limits.total {
            Answer::NoRoom
        } else {
            Answer::Now(target)
        }
    }

    /// Looks at all requests, because not all fit, or all may fit again. Reservations that shrink
    /// come first, so that there is room for the others. Among many, only as many shrink as needed.
    fn all(
        &mut self,
        tasks: &TaskTable,
        limits: &Limits,
        in_force: Bandwidth,
        now: Instant,
    ) -> Stage {
        self.is_stale = false;
        let requests = self.requests.requests();
        let is_overload = requests.len() >= MANY && self.requests.sum() > limits.total;
        let total = if is_overload {
            let most = Bandwidth::from_cpus(limits.total.as_cpus() * OF_MANY);
            // Reservations are not compressed for requests that may come later.
            let promised: Bandwidth = requests.iter().map(|request| request.least).sum();
            if promised <= limits.total {
                most.max(promised)
            } else {
                most
            }
        } else {
            limits.total
        };
        let outcome = supervisor::arbitrate(requests, &Limits { total, ..*limits });
        let is_compressed = outcome
            .gave_way
            .iter()
            .any(|how| how.why != supervisor::Why::TaskCap);
        self.overload
            .held(is_overload.then_some(outcome.level), now);
        let mut adjustments = self.adjustments(tasks, &outcome, is_compressed);
        adjustments.sort_by_key(Adjustment::raises);
        if is_overload {
            let totals = (total, limits.total);
            adjustments = overload::no_more_than_it_takes(adjustments, in_force, totals);
        }
        Stage::Adjusting {
            adjustments: adjustments.into_iter(),
            is_compressed,
        }
    }

    fn adjustments(
        &self,
        tasks: &TaskTable,
        outcome: &Outcome,
        is_compressed: bool,
    ) -> Vec<Adjustment> {
        let mut adjustments = Vec::new();
        let gave_way = if is_compressed {
            &*outcome.gave_way
        } else {
            &[]
        };
        let turns: HashMap<TaskId, usize> = (gave_way.iter().zip(1..))
            .map(|(how, turn)| (how.task, turn))
            .collect();
        for (place, grant) in outcome.grants.iter().enumerate() {
            let slot = self.requests.slot(place);
            let thread = slot.and_then(|slot| tasks.get(slot));
            let (Some(slot), Some(thread)) = (slot, thread) else {
                continue;
            };
            let (held, asked) = (thread.held(), thread.asked.clone());
            if held == grant.reservation {
                continue;
            }
            let raises = bandwidth(grant.reservation) > bandwidth(held);
            if asked.is_none() && raises && !worth_raising(held, grant) {
                continue;
            }
            let turn = turns.get(&grant.task).copied();
            let why = match turn.and_then(|turn| Some((turn, *gave_way.get(turn - 1)?))) {
                Some((turn, how)) => Why::GaveWay {
                    turn,
                    of: gave_way.len(),
                    how,
                },
                None => asked.unwrap_or(Why::RoomAgain),
            };
            adjustments.push(Adjustment {
                slot,
                held,
                target: grant.reservation,
                why,
            });
        }
        adjustments
    }
}

impl Arbitration {
    fn next_changed(&mut self) -> Option<Slot> {
        let slot = self.changed.get(self.next).copied();
        self.next += 1;
        slot
    }
}

impl Adjustment {
    fn raises(&self) -> bool {
        bandwidth(self.target) > bandwidth(self.held)
    }
}

/// True if both have the same period and differ by less than the least raise.
pub(crate) fn is_small(held: Option<Reservation>, target: Option<Reservation>) -> bool {
    let (Some(held), Some(target)) = (held, target) else {
        return false;
    };
    let (before, after) = (held.bandwidth().as_cpus(), target.bandwidth().as_cpus());
    same_server(held, target) && (after - before).abs() < before * WORTH_RAISING
}

fn worth_raising(held: Option<Reservation>, grant: &Grant) -> bool {
    let held = bandwidth(held).as_cpus();
    bandwidth(grant.reservation).as_cpus() > held * (1.0 + WORTH_RAISING)
}

#[cfg(test)]
mod tests {
    use onbeat_model::{Name, Span, Task};

    use super::*;
    use crate::Settings;
    use crate::task::Thread;

    fn of_ms(runtime: u64) -> Reservation {
        Reservation::implicit(Span::from_ms(runtime), Span::from_ms(100)).unwrap()
    }

    fn thread(tid: u32) -> Thread {
        let task = Task {
            id: TaskId::recorded(tid),
            pid: tid,
            comm: Name::default(),
        };
        Thread::new(task, Instant::ZERO, &Settings::default())
    }

    #[test]
    fn reservations_that_shrink_come_before_those_that_grow() {
        let mut tasks = TaskTable::default();
        let mut arbiter = Arbiter::new(Limits {
            total: Bandwidth::from_cpus(0.9),
            per_task: Bandwidth::ONE,
            shortest_runtime: Span::from_us(1),
        });
        let [grows, shrinks] = [1, 2].map(|tid| tasks.enter(thread(tid)));
        let held = tasks.get_mut(shrinks).unwrap();
        held.enforcement.reserve(of_ms(50));
        for (slot, wanted) in [(grows, 60), (shrinks, 20)] {
            arbiter.put_fixed(&mut tasks, slot, of_ms(wanted));
            arbiter.ask(&mut tasks, slot, Why::AskedFor);
        }
        let in_force = of_ms(50).bandwidth();
        let mut arbitration = arbiter.begin(&tasks, None, Instant::ZERO).unwrap();
        let adjustments = std::iter::from_fn(|| {
            arbiter.next(&mut arbitration, &mut tasks, in_force, Instant::ZERO)
        });
        let order: Vec<_> = adjustments.map(|a| (a.slot, a.held, a.target)).collect();
        assert_eq!(
            order,
            [
                (shrinks, Some(of_ms(50)), Some(of_ms(20))),
                (grows, None, Some(of_ms(60)))
            ]
        );
    }
}
