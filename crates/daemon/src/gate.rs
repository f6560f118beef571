//! A sensor that lets through to the loop only what somebody asked for and may have: a program that
//! starts a thousand threads is tracked as far as its owner's quota goes, and the rest is let go at
//! once.

use std::collections::BTreeSet;

use onbeat_model::{Event, Flow, Follow, Instant, Sensor, Span, Task, TaskId};

use crate::book::{Book, LeftOut, Root, Shared};
use crate::fault::Fault;
use crate::target::{Status, Target};

/// See the file's head.
#[derive(Debug)]
pub struct Gate<S> {
    inner: S,
    book: Shared,
}

impl<S: Sensor> Gate<S> {
    /// `inner`, as far as the book says.
    pub const fn new(inner: S, book: Shared) -> Self {
        Self { inner, book }
    }

    /// The sensor itself.
    pub const fn inner(&self) -> &S {
        &self.inner
    }

    /// Lets go of the threads among `events` that are not to be tracked, and of what they did.
    fn filter(&mut self, events: &mut Vec<Event>, from: usize) -> Result<(), S::Error> {
        let mut refused = BTreeSet::new();
        let mut lost = None;
        let mut book = self.book.borrow_mut();
        for event in events.iter().skip(from) {
            match event {
                Event::Tracked { task, .. } if !is_wanted(&mut book, task) => {
                    refused.insert(task.id);
                }
                Event::Renamed { task, .. }
                    if task.id.tid == task.pid && changed_hands(&book, task.pid) =>
                {
                    book.changed_hands.insert(task.pid);
                }
                Event::Burst(burst) => {
                    book.ledger
                        .blocked(burst.task, burst.executed, burst.blocked);
                }
                Event::Exhausted { at, task } => book.ledger.ran_out(*task, *at),
                Event::Exited { task, .. } => book.ended(*task),
                Event::Lost { at, .. } => lost = Some(*at),
                _ => {}
            }
        }
        if let Some(at) = lost {
            // That somebody began, too.
            book.missed_some = true;
            // And that another user's program was executed.
            let roots = book.roots.values().map(|root| root.pid);
            let partners = book.partners.all.values().map(|partner| partner.pid);
            let pids: BTreeSet<u32> = roots.chain(partners).collect();
            let strangers = pids.into_iter().filter(|pid| changed_hands(&book, *pid));
            let strangers: Vec<u32> = strangers.collect();
            book.changed_hands.extend(strangers);
            // That somebody ended may be among what was lost.
            let threads = book.roots.values().flat_map(|root| &root.threads);
            let threads = threads.chain(book.partners.all.keys());
            let gone = threads.filter(|task| !onbeat_act::task::is_alive(**task));
            for task in gone.copied().collect::<BTreeSet<TaskId>>() {
                book.ended(task);
                events.push(Event::Exited { at, task });
            }
        }
        drop(book);
        if refused.is_empty() {
            return Ok(());
        }
        let mut place = 0;
        events.retain(|event| {
            place += 1;
            place <= from || !event.task().is_some_and(|task| refused.contains(&task))
        });
        let refused: Vec<TaskId> = refused.into_iter().collect();
        self.inner.untrack_all(&refused)
    }
}

/// Whether somebody asked for this thread and may have it.
fn is_wanted(book: &mut Book, task: &Task) -> bool {
    let is_known = book.roots.values().any(|root| root.pid == task.pid);
    let adopted = (!is_known).then(|| adopt(book, task.pid)).flatten();
    let admitted = book.admit(task).is_ok();
    if let Some(root) = adopted.filter(|_| !admitted) {
        // One that its owner's quota has no room for is not remembered either: however many are
        // started, no more is kept and looked at than quotas give.
        book.roots.remove(&root);
    }
    admitted
}

/// A process that one started whose children are wanted, too, is wanted by the same, and charged to
/// one of them.
fn adopt(book: &mut Book, pid: u32) -> Option<TaskId> {
    let status = Status::read(pid)?;
    let mut roots = book.roots.values();
    let parent = roots.find(|root| root.pid == status.parent && root.wants_children())?;
    let wishes = parent.wishes_of_children();
    let person = parent.payer_of(&wishes);
    if !person.is_root() && status.uid != Some(person.uid) {
        return None;
    }
    let task = onbeat_act::task::identify(pid).ok()?;
    let root = Root {
        pid,
        origin: parent.origin.or(Some(parent.task)),
        task,
        whole: true,
        person,
        owner: status.uid,
        payers: parent.payers.clone(),
        wishes,
        treatment: parent.treatment,
        adopts: parent.adopts,
        threads: BTreeSet::new(),
    };
    book.roots.insert(task, root);
    Some(task)
}

/// Whether another user's program runs there now: a set-user-ID one was executed.
fn changed_hands(book: &Book, pid: u32) -> bool {
    let root = book.roots.values().find(|root| root.pid == pid);
    let root = root.filter(|root| !root.person.is_root());
    let mut partners = book.partners.all.values();
    let partner = partners.find(|partner| partner.pid == pid);
    let owners = [
        root.and_then(|root| root.owner),
        partner.map(|partner| partner.owner),
    ];
    let mut owners = owners.into_iter().flatten().peekable();
    owners.peek().is_some()
        && Status::read(pid).is_some_and(|now| owners.any(|owner| now.uid != Some(owner)))
}

impl<S: Sensor> Sensor for Gate<S> {
    type Error = S::Error;

    fn track(&mut self, tid: u32, follow: Follow) -> Result<(), Self::Error> {
        self.inner.track(tid, follow)
    }

    /// As far as it is of the same user as `of`, and within the quota of whoever that one is
    /// charged to; if not, the book says why. A thread of the kernel works for everybody, and is
    /// nobody's.
    fn track_partner(&mut self, tid: u32, of: TaskId) -> Result<(), Self::Error> {
        let target = Target::find(tid, None);
        let is_nobodys = onbeat_act::task::is_of_kernel(tid);
        let mut book = self.book.borrow_mut();
        let admitted = match target {
            Ok(target) if !is_nobodys => book
                .admit_partner(&target.task, target.uid, of)
                .map(|()| target.task.id),
            Ok(_) | Err(Fault::NoSuchTask(_)) => Err(None),
            Err(fault) => Err(Some(fault.to_string())),
        };
        match admitted {
            Ok(task) => self.inner.track_partner(tid, of).inspect_err(|_| {
                book.drop_partner(task);
            }),
            Err(why) => {
                let payer = book.party(of).payer;
                let left_out = LeftOut {
                    tid,
                    of,
                    payer,
                    why,
                };
                book.partners.left_out.push(left_out);
                Ok(())
            }
        }
    }

    fn untrack(&mut self, task: TaskId) -> Result<(), Self::Error> {
        self.untrack_all(&[task])
    }

    fn untrack_all(&mut self, tasks: &[TaskId]) -> Result<(), Self::Error> {
        let mut book = self.book.borrow_mut();
        for task in tasks {
            book.dismiss_partner(*task);
        }
        drop(book);
        self.inner.untrack_all(tasks)
    }

    fn poll(&mut self, timeout: Span, events: &mut Vec<Event>) -> Result<Flow, Self::Error> {
        let from = events.len();
        let flow = self.inner.poll(timeout, events)?;
        self.filter(events, from)?;
        Ok(flow)
    }

    fn let_wait(&mut self, may_wait: bool) {
        self.inner.let_wait(may_wait);
    }

    fn now(&self) -> Instant {
        self.inner.now()
    }

    fn executed(&mut self, task: TaskId) -> Option<Span> {
        self.inner.executed(task)
    }

    fn idle(&mut self) -> Option<Vec<Span>> {
        self.inner.idle()
    }
}

#[cfg(test)]
mod tests;
