//! Pipelines: threads of other programs that work for a tracked thread, found by wakeups, and
//! served with it.
//!
//! 1. A thread that exchanges wakeups with a requested thread, or with a stage, is *watched*:
//!    tracked alone, at most 16 threads at a time for each payer. It costs the thread only the
//!    records of its bursts.
//! 2. A watched thread becomes a *stage* of a path if it takes part in the jobs of a rhythm
//!    (`onbeat_infer::pipeline`), and wakes threads of the path for at least a quarter of them. A
//!    thread that only listens, such as the reader of a player's messages, delays nothing. A stage
//!    stays one without wakeups, because a well-served stage is often not waited for.
//! 3. A stage's reservation has the path's period, or that of each second to fourth job, and is
//!    large enough for all of the stage's work. A display server with only one player's share would
//!    delay all its other clients. If the stage has several paths, the shortest period counts.
//! 4. A thread may show no rhythm because a watched one starves. The watched one may then go on
//!    probation.
//! 5. A watched thread that does not become a stage, and a stage that computes all the time, are
//!    released, and watched again ever more rarely. So is a stage whose users have gone, are silent
//!    or have lost their rhythm.
//! 6. A path belongs to one user (`Party`), and has no stages of another user's. Each payer has a
//!    share of the watched threads and stages (`shares`), which others cannot take.

mod known;
mod partners;
mod review;
pub(crate) mod role;
mod shares;
mod stage;

use onbeat_model::{Actuator, Burst, Instant, Span, Task, TaskId};

use crate::Party;
use crate::run_loop::Controller;
use crate::task::table::Slot;
pub(crate) use known::Pipelines;
use known::Woken;
use role::{HEADS, Watched};
pub use stage::Stage;

/// The time between two reviews of the paths.
const EVERY: Span = Span::from_ms(250);
/// A thread is watched that exchanges so many wakeups...
const WORTH_WATCHING: f64 = 6.0;
/// ... of which this share still counts a look later: three a second are enough in the long run.
const KEPT: f64 = 0.875;
/// The first process, which brings up all others.
const FIRST_PROCESS: u32 = 1;

/// A thread to track alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Partner {
    /// Its number.
    pub tid: u32,
    /// The thread that it may work for.
    pub of: TaskId,
}

impl<A: Actuator> Controller<A> {
    /// The tracked `task` woke another thread `count` times, which was not tracked then.
    pub(crate) fn woke(&mut self, task: TaskId, wakee: &Task, count: u64) {
        let slot = self.tasks.find(task);
        if let Some(slot) = slot.filter(|slot| self.is_on_path(*slot))
            && self.tasks.find(wakee.id).is_none()
            && let payer = self.party(slot).payer
            && let Some(pipelines) = &mut self.pipelines
            && !pipelines.is_outsider(wakee.pid)
        {
            pipelines.exchanged(wakee.id.tid, (task, payer), count);
        }
    }

    /// Takes in the contacts of this turn, in the order of their times: sensors tell of one thread
    /// after the other, and of a burst when it ends.
    pub(crate) fn hear_contacts(&mut self) {
        let Some(pipelines) = &mut self.pipelines else {
            return;
        };
        let mut woken = std::mem::take(&mut pipelines.woken);
        woken.sort_by_key(|woken| woken.at);
        for woken in woken.drain(..) {
            self.contact(woken);
        }
        if let Some(pipelines) = &mut self.pipelines {
            pipelines.woken = woken;
        }
    }

    fn contact(&mut self, woken: Woken) {
        let Some(slot) = self.tasks.find(woken.task) else {
            return;
        };
        let Some(waker) = self.tasks.find_number(woken.waker) else {
            if self.is_on_path(slot)
                && let payer = self.party(slot).payer
                && let Some(pipelines) = &mut self.pipelines
            {
                pipelines.exchanged(woken.waker, (woken.task, payer), 1);
            }
            return;
        };
        if waker == slot {
            return;
        }
        self.contact_of(waker, slot, woken.at);
        self.contact_of(slot, waker, woken.at);
        if self.is_on_path(slot)
            && let Some(partner) = self.tasks.get_mut(waker).and_then(|t| t.path.partner_mut())
        {
            partner.waited_for = partner.waited_for.saturating_add(1);
        }
    }

    /// Notes the waker that begins a watched thread's job, after a rest of half the path's period.
    pub(crate) fn begin_of_job(&mut self, slot: Slot, burst: &Burst) {
        let thread = self.tasks.get(slot);
        let of = thread.and_then(|thread| thread.path.partner()?.of.first().copied());
        let Some(of) = of else {
            return;
        };
        let user = self.tasks.find(of);
        let path = user.and_then(|user| self.heads_of(user).into_iter().flatten().next());
        if let (Some((_, period)), Some(thread)) = (path, self.tasks.get_mut(slot))
            && let Some(partner) = thread.path.partner_mut()
        {
            partner.woke(burst, period / 2);
        }
    }

    /// Notes a contact of the thread in `slot` with `other`, and so with the paths of `other`.
    fn contact_of(&mut self, slot: Slot, other: Slot, at: Instant) {
        let heads = self.heads_of(other);
        let heads = heads.map(|head| head.filter(|(head, _)| self.may_work_for(slot, *head)));
        let is_head = self.tasks.get(other);
        let is_head = is_head.is_some_and(|other| other.beats().is_some());
        let Some(thread) = self.tasks.get_mut(slot) else {
            return;
        };
        // Another player at the same rate, which the same server draws for, is no stage of this
        // one's path.
        let begins = thread.path.partner().is_some_and(Watched::begins_by_itself);
        if thread.beats().is_some() || (begins && !is_head) {
            return;
        }
        let own = thread.task.id;
        for (head, period) in heads.into_iter().flatten().filter(|(head, _)| *head != own) {
            thread.path.contact(head, period, at);
        }
    }

    /// The heads of the paths on which a thread works, with their periods: itself, if it has a
    /// rhythm of its own.
    fn heads_of(&self, slot: Slot) -> [Option<(TaskId, Span)>; HEADS] {
        let mut heads = [None; HEADS];
        let Some(thread) = self.tasks.get(slot) else {
            return heads;
        };
        if let (Some(rhythm), Some(first)) = (thread.beats(), heads.first_mut()) {
            *first = Some((thread.task.id, rhythm.period));
        } else if thread.path.stage().is_some() {
            let contacts = thread.path.contacts().iter();
            for (head, (id, contacts)) in heads.iter_mut().zip(contacts) {
                *head = Some((*id, contacts.period()));
            }
        }
        heads
    }

    /// True if the path of `head` may lead to the thread in `slot`.
    fn may_work_for(&self, slot: Slot, head: TaskId) -> bool {
        let head = self.tasks.find(head);
        head.is_some_and(|head| self.party(slot).may_work_for(self.party(head)))
    }

    /// The thread's user and payer.
    fn party(&self, slot: Slot) -> Party {
        let thread = self.tasks.get(slot);
        thread.map(|thread| thread.party).unwrap_or_default()
    }

    /// True if threads that exchange wakeups with it are worth watching.
    fn is_on_path(&self, slot: Slot) -> bool {
        let thread = self.tasks.get(slot);
        thread.is_some_and(|thread| !thread.path.is_partner() || thread.path.stage().is_some())
    }
}
