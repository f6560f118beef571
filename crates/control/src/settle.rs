//! From wishes to what each thread is to have: the supervisor's grants, and in which order they are put in force.

use std::collections::HashMap;

use onbeat_decide::supervisor::{self, Grant, Limits, Outcome};
use onbeat_model::{Actuator, Bandwidth, Instant, Reservation, TaskId};

use crate::Why;
use crate::controller::Controller;
use crate::enforce::bandwidth;
use crate::roster::Slot;
use crate::rounds::{self, CROWD, OF_A_CROWD};
use crate::wishes::same_server;

/// A raise by less than this, of a thread that did not ask for one, is not worth a system call.
const WORTH_RAISING: f64 = 0.05;

impl<A: Actuator> Controller<A> {
    /// Puts in force what follows from the wishes that changed, but for the thread in `passed_over`.
    pub(crate) fn settle(&mut self, now: Instant, passed_over: Option<Slot>) {
        let limits = Limits {
            total: self
                .limits
                .total
                .min(self.squeeze.total.unwrap_or(self.limits.total)),
            ..self.limits
        };
        let fits = self.claims.sum() <= limits.total;
        let all = self.arbitrate_all || self.rounds.is_due(now, fits);
        if self.changed.is_empty() && !all {
            return;
        }
        let mut changed = std::mem::take(&mut self.changed);
        let refused_before = self.squeeze.tries;
        let is_settled = !all
            && match self.rounds.level() {
                Some(level) => self.settle_at(level, (&changed, passed_over), &limits, now),
                None if self.crowded || !fits => false,
                None => {
                    self.settle_each((&mut changed, passed_over), &limits, now);
                    true
                }
            };
        if !is_settled {
            self.arbitrate_all = false;
            self.settle_all(&limits, passed_over, now);
            self.have_been_heard(&changed);
        }
        if self.squeeze.total.is_none() && self.squeeze.tries == refused_before {
            self.squeeze.tries = 0;
        }
    }

    /// All fits: each gets its wish. Who wants less than before comes first, so that there is room for
    /// the others at any moment.
    fn settle_each(
        &mut self,
        (changed, passed_over): (&mut [Slot], Option<Slot>),
        limits: &Limits,
        now: Instant,
    ) {
        changed.sort_by_key(|&slot| self.raises(slot));
        for &mut slot in changed {
            let Some(thread) = self.thread(slot) else {
                continue;
            };
            let (place, why) = (thread.place, thread.asked.take());
            let request = place.and_then(|place| self.claims.request(place));
            let (Some(request), Some(why)) = (request, why) else {
                continue;
            };
            let outcome = supervisor::arbitrate(std::slice::from_ref(request), limits);
            for grant in outcome.grants.iter().filter(|_| Some(slot) != passed_over) {
                self.enforce(slot, grant.reservation, why.clone(), now);
            }
        }
    }

    fn raises(&self, slot: Slot) -> bool {
        let thread = self.threads.get(slot).and_then(Option::as_ref);
        thread.is_some_and(|thread| {
            let request = thread.place.and_then(|place| self.claims.request(place));
            bandwidth(request.map(|request| request.wanted)) > bandwidth(thread.held())
        })
    }

    /// Not all fits, or may again: looks at all wishes. Who gives way does so first, so that there
    /// is room for the others. In a crowd no more give way than it takes.
    fn settle_all(&mut self, limits: &Limits, passed_over: Option<Slot>, now: Instant) {
        let requests = self.claims.requests();
        let is_crowd = requests.len() >= CROWD && self.claims.sum() > limits.total;
        let total = if is_crowd {
            let most = Bandwidth::from_cpus(limits.total.as_cpus() * OF_A_CROWD);
            // What was promised is not to be compressed for the sake of those who may ask.
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
        let crowded = outcome
            .gave_way
            .iter()
            .any(|how| how.why != supervisor::Why::TaskCap);
        self.rounds.held(is_crowd.then_some(outcome.level), now);
        let mut steps = self.steps(&outcome, crowded);
        steps.sort_by_key(Step::raises);
        if is_crowd {
            steps = rounds::no_more_than_it_takes(steps, self.in_force, (total, limits.total));
        }
        steps.retain(|step| Some(step.slot) != passed_over);
        for step in steps {
            self.enforce(step.slot, step.target, step.why, now);
        }
        self.crowded = crowded;
    }

    /// All wishes have been looked at, of those that `changed` and of those that were put off.
    fn have_been_heard(&mut self, changed: &[Slot]) {
        for slot in changed.iter().copied().chain(self.rounds.take_waiting()) {
            if let Some(thread) = self.thread(slot) {
                thread.waits = false;
                thread.asked = None;
            }
        }
    }

    fn steps(&self, outcome: &Outcome, crowded: bool) -> Vec<Step> {
        let mut steps = Vec::new();
        let gave_way = if crowded { &*outcome.gave_way } else { &[] };
        let turns: HashMap<TaskId, usize> = (gave_way.iter().zip(1..))
            .map(|(how, turn)| (how.task, turn))
            .collect();
        for (place, grant) in outcome.grants.iter().enumerate() {
            let slot = self.claims.slot(place);
            let thread = slot.and_then(|slot| self.threads.get(slot)?.as_ref());
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
            steps.push(Step {
                slot,
                held,
                target: grant.reservation,
                why,
            });
        }
        steps
    }
}

/// One change to put in force.
pub(crate) struct Step {
    pub(crate) slot: Slot,
    pub(crate) held: Option<Reservation>,
    pub(crate) target: Option<Reservation>,
    pub(crate) why: Why,
}

impl Step {
    fn raises(&self) -> bool {
        bandwidth(self.target) > bandwidth(self.held)
    }
}

/// Whether the two have the same period, and differ by less than what is worth raising.
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
