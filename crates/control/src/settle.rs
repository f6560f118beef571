//! From wishes to what each thread is to have: the supervisor's grants, and in which order they are put in force.

use onbeat_decide::supervisor::{self, GaveWay, Grant, Limits, Outcome};
use onbeat_model::{Actuator, Bandwidth, Instant, Reservation};

use crate::Why;
use crate::controller::Controller;
use crate::enforce::bandwidth;
use crate::roster::Slot;
use crate::wishes::same_server;

/// A raise by less than this, of a thread that did not ask for one, is not worth a system call.
const WORTH_RAISING: f64 = 0.05;
/// So many threads that do not all fit are a crowd, in which not everybody's budget changes whenever one does.
const CROWD: usize = 100;
/// The share of the total that is handed out to a crowd: the rest is for those who ask until the next round.
const OF_A_CROWD: f64 = 0.95;

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
