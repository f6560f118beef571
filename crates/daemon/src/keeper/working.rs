//! Threads that nobody asked for and that work for those that somebody did ask for: let go with them, and named where they
//! are not kept with them.
//!
//! A thread that wakes ever new ones of other users would have as many lines written: of each user so many are, and the
//! others counted.

use std::collections::BTreeMap;

use onbeat_control::Partner;
use onbeat_model::{Actuator, Instant, Sensor, Span, TaskId};

use super::{Keeper, Loop};
use crate::book::LeftOut;

/// So many lines are written about the partners of one user's threads...
const LINES: u32 = 8;
/// ... in so long.
const EACH: Span = Span::from_secs(60);

/// How much was written about whose partners.
#[derive(Debug, Default)]
pub(super) struct Lines(BTreeMap<u32, Written>);

#[derive(Clone, Copy, Debug)]
struct Written {
    since: Instant,
    lines: u32,
    left_out: u64,
}

impl Lines {
    /// Whether one more may be written about a partner of the user `uid`; if not, it is counted.
    fn admits(&mut self, uid: u32, now: Instant) -> bool {
        let written = self.0.entry(uid).or_insert(Written {
            since: now,
            lines: 0,
            left_out: 0,
        });
        let admitted = written.lines < LINES;
        if admitted {
            written.lines += 1;
        } else {
            written.left_out += 1;
        }
        admitted
    }

    /// Of which users how many were left out in the time that is over now.
    fn left_out(&mut self, now: Instant) -> Vec<(u32, u64)> {
        let is_over = |written: &Written| now.since(written.since) >= EACH;
        let over = self.0.iter().filter(|(_, written)| is_over(written));
        let left_out = over.map(|(uid, written)| (*uid, written.left_out));
        let left_out: Vec<_> = left_out.filter(|(_, count)| *count > 0).collect();
        self.0.retain(|_, written| !is_over(written));
        left_out
    }
}

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

    /// Something is tracked no longer: who worked for that alone goes, too, and the others are charged for whom they work
    /// for yet.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Span::from_ms(ms)
    }

    #[test]
    fn about_one_users_partners_few_lines_are_written_a_minute_and_the_others_are_counted() {
        let mut lines = Lines::default();
        let written = (0..1000).filter(|&n| lines.admits(1000, at(n))).count();
        assert_eq!(written, 8);
        assert!(lines.admits(1001, at(999)), "another user");
        assert_eq!(lines.left_out(at(59_999)), []);
        assert_eq!(lines.left_out(at(60_000)), [(1000, 992)]);
        assert!(lines.admits(1000, at(60_001)));
    }

    #[test]
    fn nothing_is_kept_of_who_has_been_quiet_for_a_minute() {
        let mut lines = Lines::default();
        for uid in 0..100 {
            lines.admits(uid, at(0));
        }
        assert_eq!(lines.left_out(at(60_000)), []);
        assert!(lines.0.is_empty());
    }
}
