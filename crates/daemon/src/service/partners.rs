//! Threads without a request that work for tracked ones: released with these, and named in the
//! journal where they are not tracked with them.

use onbeat_control::Partner;
use onbeat_model::{Actuator, Instant, Sensor, TaskId};

use super::turn::Turn;
use crate::filtered_sensor::LeftOut;
use crate::line_limit::LineLimit;

/// The lines about the partners of one user's threads. A program has one or two servers that it
/// waits for.
const PARTNERS: u32 = 8;

/// The lines that are still to be written about partners.
#[derive(Debug)]
pub(super) struct PartnerUpkeep {
    lines: LineLimit,
}

impl PartnerUpkeep {
    pub(super) const fn new() -> Self {
        Self {
            lines: LineLimit::new(PARTNERS),
        }
    }

    /// Drops the threads that are not, or no longer, tracked with the ones that they work for.
    pub(super) fn settle<S: Sensor, A: Actuator>(&mut self, turn: &mut Turn<'_, S, A>) {
        turn.publish();
        let mut registry = turn.registry.borrow_mut();
        let dismissed = std::mem::take(&mut registry.partners.dismissed);
        for task in dismissed {
            registry.drop_partner(task);
        }
        drop(registry);
        for LeftOut {
            tid,
            of,
            payer,
            why,
        } in turn.sensor.take_left_out()
        {
            if let Some(why) = why.filter(|_| self.lines.admits(payer, turn.now)) {
                tracing::info!(
                    tid,
                    "thread {tid} works with thread {of}, and is not served with it: {why}"
                );
            }
            turn.controller
                .partner_refused(Partner { tid, of }, turn.now);
        }
        self.follow_users(turn);
    }

    /// Writes the lines that were left out for some time as one.
    pub(super) fn log_left_out(&mut self, now: Instant) {
        for (uid, count) in self.lines.left_out(now) {
            tracing::info!(
                uid,
                "{count} more threads work with threads of user {uid}, and are not served with them, either"
            );
        }
    }

    /// Something is tracked no longer: a partner that worked for that alone goes, too. Others are
    /// charged for a task that they still work for.
    fn follow_users<S: Sensor, A: Actuator>(&mut self, turn: &mut Turn<'_, S, A>) {
        loop {
            let in_doubt = std::mem::take(&mut turn.registry.borrow_mut().partners.in_doubt);
            if !in_doubt {
                return;
            }
            let registry = turn.registry.borrow();
            let tasks: Vec<TaskId> = registry.partners.all.keys().copied().collect();
            drop(registry);
            for task in tasks {
                let users = turn.controller.works_for(task);
                let followed = turn.registry.borrow_mut().follow(task, users);
                match followed {
                    Ok(true) => turn.controller.changed_party(task, turn.now),
                    Ok(false) => untrack(task, turn),
                    Err(error) => {
                        let registry = turn.registry.borrow();
                        let payer = registry.ledger.account(task).map(|payer| payer.uid);
                        drop(registry);
                        if payer.is_none_or(|payer| self.lines.admits(payer, turn.now)) {
                            tracing::info!(
                                tid = task.tid,
                                "thread {task} is no longer tracked with others: {error}"
                            );
                        }
                        untrack(task, turn);
                    }
                }
            }
        }
    }
}

/// The thread gets back what it had, and is tracked no longer.
pub(super) fn untrack<S: Sensor, A: Actuator>(task: TaskId, turn: &mut Turn<'_, S, A>) {
    if !turn.registry.borrow().partners.all.contains_key(&task) {
        return;
    }
    // If the kernel refuses, events of it still come, and are ignored.
    let _ = turn.sensor.untrack(&[task]);
    turn.controller.forget(task, turn.now);
    turn.publish();
    turn.registry.borrow_mut().drop_partner(task);
}
