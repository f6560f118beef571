//! From wishes to reservations in force: the supervisor's grants, the actuator's answers, and what
//! follows from a refusal.

use onbeat_decide::supervisor::{self, GaveWay, Grant, Limits, Outcome};
use onbeat_model::{Actuator, Bandwidth, Instant, Refusal, Reservation, Span, Task};

use crate::controller::{Controller, Due};
use crate::roster::Slot;
use crate::thread::Relation;
use crate::wishes::same_server;
use crate::{Entry, What, Why};

/// A raise by less than this, of a thread that did not ask for one, is not worth a system call.
const WORTH_RAISING: f64 = 0.05;
/// So many threads that do not all fit are a crowd, in which not everybody's budget changes whenever one does.
const CROWD: usize = 100;
/// The share of the total that is handed out to a crowd: the rest is for those who ask until the next round.
const OF_A_CROWD: f64 = 0.95;
pub(crate) const FIRST_RETRY: Span = Span::from_secs(1);
const LONGEST_RETRY: Span = Span::from_secs(30);

/// `first`, doubled `times` times, within reason.
pub(crate) fn backed_off(first: Span, times: u32) -> Span {
    (first * (1 << times.min(16))).min(LONGEST_RETRY)
}

impl<A: Actuator> Controller<A> {
    /// Puts in force what follows from the wishes that changed.
    pub(crate) fn settle(&mut self, now: Instant) {
        if self.changed.is_empty() && !self.arbitrate_all {
            return;
        }
        let changed = std::mem::take(&mut self.changed);
        let limits = Limits {
            total: self
                .limits
                .total
                .min(self.squeeze.total.unwrap_or(self.limits.total)),
            ..self.limits
        };
        let refused_before = self.squeeze.tries;
        if self.arbitrate_all || self.crowded || self.claims.sum() > limits.total {
            self.arbitrate_all = false;
            self.settle_all(&limits, now);
            for slot in changed {
                if let Some(thread) = self.thread(slot) {
                    thread.asked = None;
                }
            }
        } else {
            self.settle_each(changed, &limits, now);
        }
        if self.squeeze.total.is_none() && self.squeeze.tries == refused_before {
            self.squeeze.tries = 0;
        }
    }

    /// All fits: each gets its wish. Who wants less than before comes first, so that there is room for
    /// the others at any moment.
    fn settle_each(&mut self, mut changed: Vec<Slot>, limits: &Limits, now: Instant) {
        changed.sort_by_key(|&slot| self.raises(slot));
        for slot in changed {
            let Some(thread) = self.thread(slot) else {
                continue;
            };
            let (place, why) = (thread.place, thread.asked.take());
            let request = place.and_then(|place| self.claims.request(place));
            let (Some(request), Some(why)) = (request, why) else {
                continue;
            };
            let outcome = supervisor::arbitrate(std::slice::from_ref(request), limits);
            for grant in &outcome.grants {
                self.enforce(slot, grant.reservation, why.clone(), now);
            }
        }
    }

    fn raises(&self, slot: Slot) -> bool {
        let thread = self.threads.get(slot).and_then(Option::as_ref);
        thread.is_some_and(|thread| {
            let request = thread.place.and_then(|place| self.claims.request(place));
            bandwidth(request.map(|request| request.wanted)) > bandwidth(thread.held)
        })
    }

    /// Not all fits, or may again: looks at all wishes. Who gives way does so first, so that there
    /// is room for the others. In a crowd nobody gives way before somebody needs it, and what differs little waits for that, too.
    fn settle_all(&mut self, limits: &Limits, now: Instant) {
        let requests = self.claims.requests();
        let is_crowd = requests.len() >= CROWD && self.claims.sum() > limits.total;
        let total = if is_crowd {
            Bandwidth::from_cpus(limits.total.as_cpus() * OF_A_CROWD)
        } else {
            limits.total
        };
        let outcome = supervisor::arbitrate(requests, &Limits { total, ..*limits });
        let crowded = outcome
            .gave_way
            .iter()
            .any(|how| how.why != supervisor::Why::TaskCap);
        let mut steps = self.steps(&outcome, crowded);
        if is_crowd && self.fits_without_those_that_can_wait(&steps, limits.total) {
            steps.retain(|step| !step.can_wait());
        }
        steps.sort_by_key(|step| step.raises);
        for step in steps {
            self.enforce(step.slot, step.target, step.why, now);
        }
        self.crowded = crowded;
    }

    fn fits_without_those_that_can_wait(&self, steps: &[Step], total: Bandwidth) -> bool {
        let others = steps.iter().filter(|step| !step.can_wait());
        let (before, after) = others.fold((0.0, 0.0), |(before, after), step| {
            let held = self.threads.get(step.slot).and_then(Option::as_ref);
            let held = bandwidth(held.and_then(|thread| thread.held));
            (
                before + held.as_cpus(),
                after + bandwidth(step.target).as_cpus(),
            )
        });
        self.in_force.as_cpus() - before + after <= total.as_cpus()
    }

    fn steps(&self, outcome: &Outcome, crowded: bool) -> Vec<Step> {
        let mut steps = Vec::new();
        for (place, grant) in outcome.grants.iter().enumerate() {
            let slot = self.claims.slot(place);
            let thread = slot.and_then(|slot| self.threads.get(slot)?.as_ref());
            let (Some(slot), Some(thread)) = (slot, thread) else {
                continue;
            };
            let (held, asked) = (thread.held, thread.asked.clone());
            if held == grant.reservation {
                continue;
            }
            let raises = bandwidth(grant.reservation) > bandwidth(held);
            if asked.is_none() && raises && !worth_raising(held, grant) {
                continue;
            }
            let is_asked = asked.is_some();
            let why = match gave_way(&outcome.gave_way, grant) {
                Some(why) if crowded => why,
                _ => asked.unwrap_or(Why::RoomAgain),
            };
            steps.push(Step {
                slot,
                target: grant.reservation,
                why,
                raises,
                is_asked,
                is_small: is_small(held, grant.reservation),
            });
        }
        steps
    }

    fn enforce(&mut self, slot: Slot, target: Option<Reservation>, why: Why, now: Instant) {
        let Some(thread) = self.threads.get_mut(slot).and_then(Option::as_mut) else {
            return;
        };
        if thread.held == target || thread.relation != Relation::Open {
            return;
        }
        let Some(target) = target else {
            self.release(slot, why, now);
            return;
        };
        let task = thread.task.id;
        match self.put_in_force(slot, task, target) {
            Ok(()) => self.reserved(slot, target, why, now),
            Err(refusal) => self.refused(slot, target, why, refusal, now),
        }
    }

    pub(crate) fn reserved(&mut self, slot: Slot, target: Reservation, why: Why, now: Instant) {
        let Some(thread) = self.thread(slot) else {
            return;
        };
        let (task, old) = (thread.task, thread.held);
        thread.refusals = 0;
        thread.owed = None;
        thread.figures.changes += 1;
        let what = if old.is_some() {
            What::Changed
        } else {
            What::Reserved
        };
        self.hold(slot, Some(target), now);
        self.enter(task, what, why, (old, Some(target)), now);
    }

    fn refused(
        &mut self,
        slot: Slot,
        target: Reservation,
        why: Why,
        refusal: Refusal,
        now: Instant,
    ) {
        let Some(thread) = self.thread(slot) else {
            return;
        };
        let (task, held) = (thread.task, thread.held);
        match refusal {
            Refusal::Settling { until } => {
                thread.relation = Relation::Refused;
                thread.postponed = Some(why);
                self.timers.set(until, Due::Retry(task.id));
            }
            Refusal::NoRoom { .. } => {
                if self.squeeze.tries == 0 {
                    let change = (held, Some(target));
                    self.enter(task, What::Refused, Why::Refused(refusal), change, now);
                }
                self.step_down(slot, target, why, now);
            }
            Refusal::OverQuota { left, .. } => {
                let first = thread.ceiling.is_none();
                if first {
                    let change = (held, Some(target));
                    self.enter(task, What::Refused, Why::Refused(refusal), change, now);
                }
                self.cap(slot, target, left, why, now);
            }
            Refusal::TakenOver { .. } => self.yield_to_other(slot, Some(refusal), now),
            Refusal::Gone => self.let_go(slot, now),
            _ => {
                let first = thread.refusals == 0;
                let pause = backed_off(FIRST_RETRY, thread.refusals);
                thread.refusals += 1;
                thread.relation = Relation::Refused;
                if held.is_none() {
                    self.drop_claim(slot);
                }
                self.timers.set(now + pause, Due::Retry(task.id));
                if first {
                    let change = (held, Some(target));
                    self.enter(task, What::Refused, Why::Refused(refusal), change, now);
                }
            }
        }
    }

    /// The time to ask again has come.
    pub(crate) fn retry(&mut self, slot: Slot, now: Instant) {
        let Some(thread) = self.thread(slot) else {
            return;
        };
        if thread.ceiling.take().is_some() && thread.relation == Relation::Open {
            self.consider(slot, None);
            return;
        }
        if thread.relation != Relation::Refused {
            return;
        }
        thread.relation = Relation::Open;
        let why = thread.postponed.take();
        if thread.place.is_some() {
            self.ask(slot, why.unwrap_or(Why::RoomAgain));
        } else if thread.held.is_some() {
            self.release(slot, why.unwrap_or(Why::RhythmLost), now);
        } else {
            self.consider(slot, why);
        }
    }

    /// Takes the thread's wish back, and its reservation.
    pub(crate) fn withdraw(&mut self, slot: Slot, why: Why, now: Instant) {
        let fixed = self
            .thread(slot)
            .is_some_and(|thread| thread.fixed.is_some());
        if fixed && why != Why::Finished {
            return;
        }
        self.drop_claim(slot);
        if self
            .thread(slot)
            .is_some_and(|thread| thread.held.is_some())
        {
            self.release(slot, why, now);
        }
    }

    /// The thread is gone. That it ended, the sensor will tell in its turn.
    pub(crate) fn let_go(&mut self, slot: Slot, now: Instant) {
        self.drop_claim(slot);
        if let Some(thread) = self.thread(slot) {
            thread.relation = Relation::Gone;
            thread.owed = None;
        }
        self.hold(slot, None, now);
        self.dismiss(slot, now);
    }

    /// Somebody else changed the thread, and wins.
    pub(crate) fn yield_to_other(&mut self, slot: Slot, refusal: Option<Refusal>, now: Instant) {
        self.drop_claim(slot);
        let Some(thread) = self.thread(slot) else {
            return;
        };
        let (task, old) = (thread.task, thread.held);
        thread.relation = Relation::TakenOver;
        thread.owed = None;
        self.hold(slot, None, now);
        let refusal = refusal.unwrap_or(Refusal::TakenOver {
            now: "noticed by itself".to_owned(),
        });
        self.enter(
            task,
            What::TakenOver,
            Why::Refused(refusal),
            (old, None),
            now,
        );
    }

    /// Keeps account of what the thread holds from `now` on.
    pub(crate) fn hold(&mut self, slot: Slot, held: Option<Reservation>, now: Instant) {
        let Some(thread) = self.threads.get_mut(slot).and_then(Option::as_mut) else {
            return;
        };
        self.in_force = self.in_force - bandwidth(thread.held) + bandwidth(held);
        thread.held = held;
        thread.figures.holds(held.map(|held| held.bandwidth()), now);
    }

    pub(crate) fn enter(
        &mut self,
        task: Task,
        what: What,
        why: Why,
        (old, new): (Option<Reservation>, Option<Reservation>),
        at: Instant,
    ) {
        let slot = self.roster.find(task.id);
        if let Some(thread) = slot.and_then(|slot| self.thread(slot)) {
            thread.last_entry = Some((what, why.clone()));
        }
        self.journal.push(Entry {
            at,
            task,
            what,
            why,
            old,
            new,
        });
    }
}

/// One change to put in force.
struct Step {
    slot: Slot,
    target: Option<Reservation>,
    why: Why,
    raises: bool,
    /// The thread's own wish has changed.
    is_asked: bool,
    /// By less than what is worth a system call.
    is_small: bool,
}

impl Step {
    /// The thread is to have less for the sake of others, or about what it has.
    const fn can_wait(&self) -> bool {
        self.is_small || (!self.raises && !self.is_asked)
    }
}

/// Whether the two have the same period, and differ by less than what is worth raising.
fn is_small(held: Option<Reservation>, target: Option<Reservation>) -> bool {
    let (Some(held), Some(target)) = (held, target) else {
        return false;
    };
    let (before, after) = (held.bandwidth().as_cpus(), target.bandwidth().as_cpus());
    same_server(held, target) && (after - before).abs() < before * WORTH_RAISING
}

pub(crate) fn bandwidth(reservation: Option<Reservation>) -> Bandwidth {
    reservation.map_or(Bandwidth::ZERO, |r| r.bandwidth())
}

fn worth_raising(held: Option<Reservation>, grant: &Grant) -> bool {
    let held = bandwidth(held).as_cpus();
    bandwidth(grant.reservation).as_cpus() > held * (1.0 + WORTH_RAISING)
}

fn gave_way(gave_way: &[GaveWay], grant: &Grant) -> Option<Why> {
    let index = gave_way.iter().position(|how| how.task == grant.task)?;
    Some(Why::GaveWay {
        turn: index + 1,
        of: gave_way.len(),
        how: *gave_way.get(index)?,
    })
}
