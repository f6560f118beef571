//! Threads that nobody asked for and that work for those that somebody did ask for: let go with
//! them, and named where they are not kept with them.

use onbeat_control::Partner;
use onbeat_model::{Actuator, Instant, Sensor, TaskId};

use super::{Keeper, Loop};
use crate::book::LeftOut;

/// So many lines are written about the partners of one user's threads in a minute.
pub(super) const LINES: u32 = 8;

impl Keeper {
    /// Threads that are not, or no longer, kept on the beat with the ones that they work for.
    pub(super) fn settle_partners<S: Sensor, A: Actuator>(&mut self, the: &mut Loop<'_, S, A>) {
        self.teller.tell(the.controller, &self.book);
        let mut book = self.book.borrow_mut();
        let dismissed = std::mem::take(&mut book.partners.dismissed);
        for task in dismissed {
            book.drop_partner(task);
        }
        let left_out = std::mem::take(&mut book.partners.left_out);
        drop(book);
        for LeftOut {
            tid,
            of,
            payer,
            why,
        } in left_out
        {
            if let Some(why) = why.filter(|_| self.lines.admits(payer, the.now)) {
                tracing::info!(
                    tid,
                    "thread {tid} works with thread {of}, and is not kept on the beat with it: {why}"
                );
            }
            the.controller.partner_refused(Partner { tid, of }, the.now);
        }
        self.follow_users(the);
    }

    /// The lines that were not written for some time are told in one.
    pub(super) fn tell_untold_lines(&mut self, now: Instant) {
        for (uid, count) in self.lines.left_out(now) {
            tracing::info!(
                uid,
                "{count} more threads work with some that are tracked for user {uid}, and are not kept on the beat with \
                 them, either"
            );
        }
    }

    /// Something is tracked no longer: who worked for that alone goes, too, and the others are
    /// charged for whom they work for yet.
    fn follow_users<S: Sensor, A: Actuator>(&mut self, the: &mut Loop<'_, S, A>) {
        while std::mem::take(&mut self.book.borrow_mut().partners.in_doubt) {
            let tasks: Vec<TaskId> = self.book.borrow().partners.all.keys().copied().collect();
            for task in tasks {
                let users = the.controller.works_for(task);
                let followed = self.book.borrow_mut().follow(task, users);
                match followed {
                    Ok(true) => the.controller.changed_party(task),
                    Ok(false) => self.let_partner_go(task, the),
                    Err(objection) => {
                        let payer = self.book.borrow().ledger.person(task).map(|p| p.uid);
                        if payer.is_none_or(|payer| self.lines.admits(payer, the.now)) {
                            tracing::info!(
                                tid = task.tid,
                                "thread {task} is no longer kept on the beat with others: {objection}"
                            );
                        }
                        self.let_partner_go(task, the);
                    }
                }
            }
        }
    }

    /// The thread gets back what it had, and is tracked no longer.
    pub(super) fn let_partner_go<S: Sensor, A: Actuator>(
        &mut self,
        task: TaskId,
        the: &mut Loop<'_, S, A>,
    ) {
        if !self.book.borrow().partners.all.contains_key(&task) {
            return;
        }
        // If the kernel refuses, events of it still come, and are not listened to.
        let _ = the.sensor.untrack(task);
        the.controller.forget(task, the.now);
        self.teller.tell(the.controller, &self.book);
        self.book.borrow_mut().drop_partner(task);
    }
}
