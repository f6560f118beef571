//! Threads without a request that work for tracked ones: released with these, and named in the
//! journal where they are not tracked with them.

use onbeat_control::Partner;
use onbeat_model::{Sensor, TaskId};

use super::turn::Turn;
use crate::filtered_sensor::LeftOut;

/// Drops the threads that are not, or no longer, tracked with the ones that they work for.
pub(super) fn settle(turn: &mut Turn<'_>) {
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
        if let Some(why) = why.filter(|_| turn.publisher.may_write(payer, turn.now)) {
            tracing::info!(
                tid,
                "thread {tid} works with thread {of}, and is not served with it: {why}"
            );
        }
        turn.controller
            .partner_refused(Partner { tid, of }, turn.now);
    }
    follow_users(turn);
}

/// Something is tracked no longer: a partner that worked for that alone goes, too. Others are
/// charged for a task that they still work for.
fn follow_users(turn: &mut Turn<'_>) {
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
                    if payer.is_none_or(|payer| turn.publisher.may_write(payer, turn.now)) {
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
pub(super) fn untrack(task: TaskId, turn: &mut Turn<'_>) {
    if !turn.registry.borrow().partners.all.contains_key(&task) {
        return;
    }
    // If the kernel refuses, events of it still come, and are ignored.
    let _ = turn.sensor.untrack(&[task]);
    turn.controller.forget(task, turn.now);
    turn.publish();
    turn.registry.borrow_mut().drop_partner(task);
}
