//! Processes and threads that are kept on the beat.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use onbeat_act::task;
use onbeat_control::Treatment;
use onbeat_model::{Actuator, Follow, Sensor, TaskId};

use super::{Keeper, Loop};
use crate::book::{Holder, Root};
use crate::fault::Fault;
use crate::request::Caller;
use crate::target::Target;

/// What is followed beside a process whose children are wanted, or not.
pub(super) const fn follow(children: bool) -> Follow {
    if children {
        Follow::Children
    } else {
        Follow::Threads
    }
}

/// Whether the whole process is meant, not one thread of it.
fn is_whole(target: &Target, follow: Follow) -> bool {
    target.is_process() && follow != Follow::Alone
}

/// So many processes are looked through at a time for threads whose start was lost.
const ROOTS_AT_A_TIME: usize = 16;

impl Keeper {
    pub(super) fn track<S: Sensor, A: Actuator>(
        &mut self,
        caller: &Caller,
        target: &Target,
        children: bool,
        the: &mut Loop<'_, S, A>,
    ) -> Result<(), Fault> {
        if caller.client.is_gone() {
            return Err(Fault::NotHeld("the caller has left the bus".to_owned()));
        }
        let holder = Holder::Client(Arc::clone(&caller.client.name));
        self.track_for(holder, &caller.person, target, follow(children), the)
    }

    /// Tracks `target`, charged to `person`, for as long as `holder` is there.
    pub(super) fn track_for<S: Sensor, A: Actuator>(
        &mut self,
        holder: Holder,
        person: &Arc<crate::person::Person>,
        target: &Target,
        follow: Follow,
        the: &mut Loop<'_, S, A>,
    ) -> Result<(), Fault> {
        let (tid, id) = (target.task.id.tid, target.task.id);
        self.let_go_of_partners(target, the);
        if let Some(root) = self.book.borrow_mut().roots.get_mut(&id) {
            let heard = root.wants_children() || follow != Follow::Children;
            // A rule may have wanted its first thread alone.
            let was_whole = root.whole;
            root.whole |= is_whole(target, follow);
            root.want(holder, person, follow);
            if heard && root.whole == was_whole {
                return Ok(());
            }
        } else {
            self.enter(holder, person, target, follow)?;
        }
        let tracked = the.sensor.track(tid, follow);
        if tracked.is_ok() && target.is_alive() {
            return Ok(());
        }
        self.let_go(id, the);
        Err(match tracked {
            Ok(()) => Fault::NoSuchTask(format!("there is no task {tid} any more")),
            Err(error) => Fault::Failed(error.to_string()),
        })
    }

    /// What was tracked because it may work for another thread is from now on tracked for its own
    /// sake.
    fn let_go_of_partners<S: Sensor, A: Actuator>(
        &mut self,
        target: &Target,
        the: &mut Loop<'_, S, A>,
    ) {
        let is_meant = |task: &TaskId, pid: u32| {
            (target.is_process() && pid == target.task.pid) || *task == target.task.id
        };
        let book = self.book.borrow();
        let partners = book.partners.all.iter();
        let partners = partners.filter(|(task, partner)| is_meant(task, partner.pid));
        let partners: Vec<TaskId> = partners.map(|(task, _)| *task).collect();
        drop(book);
        for partner in partners {
            self.let_partner_go(partner, the);
        }
    }

    /// Enters it into the book, with its first thread: if not even that is within the quota, the
    /// caller is to know.
    fn enter(
        &mut self,
        holder: Holder,
        person: &Arc<crate::person::Person>,
        target: &Target,
        follow: Follow,
    ) -> Result<(), Fault> {
        let mut root = Root {
            pid: target.task.pid,
            origin: None,
            task: target.task.id,
            whole: is_whole(target, follow),
            person: Arc::clone(person),
            owner: Some(target.uid),
            payers: BTreeMap::new(),
            wishes: BTreeMap::new(),
            treatment: Treatment::default(),
            adopts: false,
            threads: BTreeSet::new(),
        };
        root.want(holder, person, follow);
        let mut book = self.book.borrow_mut();
        book.roots.insert(target.task.id, root);
        book.admit(&target.task).map_err(|objection| {
            book.roots.remove(&target.task.id);
            Fault::OverQuota(objection.to_string())
        })
    }

    pub(super) fn untrack<S: Sensor, A: Actuator>(
        &mut self,
        caller: &Caller,
        target: &Target,
        the: &mut Loop<'_, S, A>,
    ) -> Result<(), Fault> {
        let (tid, id) = (target.task.id.tid, target.task.id);
        let holder = Holder::Client(Arc::clone(&caller.client.name));
        let unwanted = self.book.borrow_mut().drop_wish(&holder, id);
        let unwanted = unwanted.ok_or_else(|| {
            Fault::NotHeld(format!("task {tid} was not tracked from this connection"))
        })?;
        for root in unwanted {
            self.let_go(root, the);
        }
        self.settle_payers(the);
        Ok(())
    }

    /// Some want no longer what others want, too, and what they paid for.
    pub(super) fn settle_payers<S: Sensor, A: Actuator>(&mut self, the: &mut Loop<'_, S, A>) {
        let beyond = self.book.borrow_mut().settle_payers();
        self.let_threads_go(&beyond, the);
    }

    /// Nobody wants `root` any more: its threads get back what they had.
    pub(super) fn let_go<S: Sensor, A: Actuator>(
        &mut self,
        root: TaskId,
        the: &mut Loop<'_, S, A>,
    ) {
        let threads = self.book.borrow_mut().take_out(root);
        self.let_threads_go(&threads, the);
    }

    fn let_threads_go<S: Sensor, A: Actuator>(
        &mut self,
        threads: &[TaskId],
        the: &mut Loop<'_, S, A>,
    ) {
        // If the kernel refuses, events of it still come, and are not listened to.
        let _ = the.sensor.untrack_all(threads);
        for &thread in threads {
            the.controller.forget(thread, the.now);
            self.teller.tell(the.controller, &self.book);
            self.book.borrow_mut().ledger.leave(thread);
        }
    }

    /// Events were lost, or there was no room for one thread more: what started then is tracked
    /// now. A few roots at a time, as each has all tasks of the machine looked at.
    pub(super) fn take_in_what_was_missed<S: Sensor, A: Actuator>(
        &mut self,
        the: &mut Loop<'_, S, A>,
    ) {
        if self.looked_through.is_empty() {
            let mut book = self.book.borrow_mut();
            if !std::mem::take(&mut book.missed_some) {
                return;
            }
            let whole = book.roots.iter().filter(|(_, root)| root.whole);
            self.looked_through.extend(whole.map(|(id, _)| *id));
        }
        let rest = self.looked_through.len().saturating_sub(ROOTS_AT_A_TIME);
        let mut some = self.looked_through.split_off(rest);
        while let Some(id) = some.pop() {
            let book = self.book.borrow();
            let follow = book
                .roots
                .get(&id)
                .map(|root| follow(root.wants_children()));
            drop(book);
            let Some(follow) = follow else {
                continue;
            };
            // One that is gone is heard of by other ways. For one that is not there is no room yet:
            // the others go first.
            if the.sensor.track(id.tid, follow).is_err() && task::is_alive(id) {
                self.looked_through.insert(0, id);
                self.looked_through.append(&mut some);
                return;
            }
        }
    }

    /// Where another user's program runs now, nobody who asked before has a say.
    pub(super) fn let_go_of_strangers<S: Sensor, A: Actuator>(&mut self, the: &mut Loop<'_, S, A>) {
        let strangers = std::mem::take(&mut self.book.borrow_mut().changed_hands);
        for pid in strangers {
            let book = self.book.borrow();
            let roots = book.roots.iter().filter(|(_, root)| root.pid == pid);
            let roots: Vec<TaskId> = roots.map(|(id, _)| *id).collect();
            let grants = book
                .grants
                .iter()
                .filter(|(_, grant)| grant.task.pid == pid);
            let grants: Vec<TaskId> = grants.map(|(id, _)| *id).collect();
            let partners = book.partners.all.iter();
            let partners = partners.filter(|(_, partner)| partner.pid == pid);
            let partners: Vec<TaskId> = partners.map(|(task, _)| *task).collect();
            drop(book);
            for partner in partners {
                self.let_partner_go(partner, the);
            }
            for task in grants {
                self.take_back(task, the);
            }
            for root in roots {
                self.let_go(root, the);
            }
            self.lower_all_of(pid);
        }
    }
}
