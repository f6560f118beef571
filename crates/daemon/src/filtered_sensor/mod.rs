//! A sensor that lets through to the loop only threads that a client asked for and may have: a
//! program that starts a thousand threads is tracked as far as its owner's quota goes, and the rest
//! is let go at once.

use std::collections::BTreeSet;

use onbeat_model::{
    Event, Flow, Follow, Instant, Origin, RunningProgram, Sensor, Span, Task, TaskId,
};
use onbeat_sense::bpf::BpfSensor;

use crate::directory;
use crate::fault::Fault;
use crate::registry::{Registry, SharedRegistry, TrackedProcess};
use crate::target::{Status, Target};

#[derive(Debug)]
pub struct FilteredSensor<S = BpfSensor> {
    inner: S,
    registry: SharedRegistry,
    changed_owners: BTreeSet<u32>,
    /// Events were lost: threads of tracked processes may have started that are not tracked.
    has_missed_starts: bool,
    left_out: Vec<LeftOut>,
}

/// A thread that is not tracked with the one that it works for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
    pub tid: u32,
    pub of: TaskId,
    /// To whom that one is charged.
    pub payer: u32,
    /// Why not, if that is worth a line in the journal.
    pub why: Option<String>,
}

impl<S: Sensor> FilteredSensor<S> {
    pub const fn new(inner: S, registry: SharedRegistry) -> Self {
        Self {
            inner,
            registry,
            changed_owners: BTreeSet::new(),
            has_missed_starts: false,
            left_out: Vec::new(),
        }
    }

    /// The processes in which another user's program runs since this was last called.
    pub(crate) fn take_changed_owners(&mut self) -> BTreeSet<u32> {
        std::mem::take(&mut self.changed_owners)
    }

    /// Whether threads may have started, since this was last called, that are not tracked.
    pub(crate) fn take_missed_starts(&mut self) -> bool {
        std::mem::take(&mut self.has_missed_starts) | self.inner.take_missed_starts()
    }

    pub(crate) fn take_left_out(&mut self) -> Vec<LeftOut> {
        std::mem::take(&mut self.left_out)
    }

    fn turns_by(&self, next: Instant) {
        if let Some(watch) = &self.registry.borrow().watch {
            watch.turned(next);
        }
    }

    pub const fn inner(&self) -> &S {
        &self.inner
    }

    /// Lets go of the threads among `events` that are not to be tracked, and of what they did.
    fn filter(&mut self, events: &mut Vec<Event>, from: usize) -> Result<(), S::Error> {
        let mut refused = BTreeSet::new();
        let mut lost = None;
        let mut registry = self.registry.borrow_mut();
        for event in events.iter().skip(from) {
            match event {
                Event::Tracked { task, .. }
                    if !is_wanted(&mut registry, task, self.inner.origin(task.id)) =>
                {
                    refused.insert(task.id);
                }
                Event::Renamed { task, .. } if task.id.tid == task.pid => {
                    let uid = self.inner.origin(task.id).map(|origin| origin.uid);
                    if has_changed_owner(&registry, task.pid, || uid) {
                        self.changed_owners.insert(task.pid);
                    }
                }
                Event::Burst(burst) => {
                    registry
                        .ledger
                        .blocked(burst.task, burst.executed, burst.blocked);
                }
                Event::Exhausted { at, task } => registry.ledger.ran_out(*task, *at),
                Event::Exited { task, .. } => registry.ended(*task),
                Event::Lost { at, .. } => lost = Some(*at),
                _ => {}
            }
        }
        if let Some(at) = lost {
            // A start may have been lost, too.
            self.has_missed_starts = true;
            // And that another user's program was executed.
            let processes = registry.processes.values().map(|process| process.pid);
            let partners = registry.partners.all.values().map(|partner| partner.pid);
            let pids: BTreeSet<u32> = processes.chain(partners).collect();
            let is_strangers = |pid: &u32| {
                let uid = || Status::read(*pid).map(|now| now.uid);
                has_changed_owner(&registry, *pid, uid)
            };
            self.changed_owners
                .extend(pids.into_iter().filter(is_strangers));
            // An end may be among the lost events.
            let threads = registry
                .processes
                .values()
                .flat_map(|process| &process.threads);
            let threads = threads.chain(registry.partners.all.keys());
            let gone = threads.filter(|task| !onbeat_act::task::is_alive(**task));
            for task in gone.copied().collect::<BTreeSet<TaskId>>() {
                registry.ended(task);
                events.push(Event::Exited { at, task });
            }
        }
        drop(registry);
        if refused.is_empty() {
            return Ok(());
        }
        let mut place = 0;
        events.retain(|event| {
            place += 1;
            place <= from || !event.task().is_some_and(|task| refused.contains(&task))
        });
        let refused: Vec<TaskId> = refused.into_iter().collect();
        self.inner.untrack(&refused)
    }
}

fn is_wanted(registry: &mut Registry, task: &Task, origin: Option<Origin>) -> bool {
    let is_known = registry
        .processes
        .values()
        .any(|process| process.pid == task.pid);
    let origin = origin.filter(|_| !is_known);
    let adopted = origin.and_then(|origin| adopt(registry, task, origin));
    let admitted = registry.admit(task).is_ok();
    if let Some(process) = adopted.filter(|_| !admitted) {
        // One that its owner's quota has no room for is not remembered either: however many are
        // started, no more is kept and looked at than quotas give.
        registry.processes.remove(&process);
    }
    admitted
}

/// A process that one started whose children are wanted, too, is wanted by the same, and charged to
/// one of them; another user's that root wants, to that user. It comes with its first thread.
fn adopt(registry: &mut Registry, task: &Task, origin: Origin) -> Option<TaskId> {
    if task.id.tid != task.pid {
        return None;
    }
    let mut processes = registry.processes.values();
    let parent =
        processes.find(|process| process.pid == origin.parent && process.wants_children())?;
    let leases = parent.leases_of_children();
    let mut account = parent.payer_of(&leases);
    let mut payers = parent.payers.clone();
    if origin.uid != Some(account.uid) {
        if !account.is_root() {
            return None;
        }
        account = directory::now(origin.uid?);
        payers
            .values_mut()
            .for_each(|payer| payer.clone_from(&account));
    }
    let process = TrackedProcess {
        origin: parent.origin.or(Some(parent.task)),
        payers,
        leases,
        treatment: parent.treatment,
        adopts: parent.adopts,
        ..TrackedProcess::new(task.pid, task.id, account, origin.uid)
    };
    registry.processes.insert(task.id, process);
    Some(task.id)
}

/// Whether another user's program runs there now: a set-user-ID one was executed. `uid` tells
/// whose, if there is one.
fn has_changed_owner(
    registry: &Registry,
    pid: u32,
    uid: impl FnOnce() -> Option<Option<u32>>,
) -> bool {
    let mut processes = registry.processes.values();
    let process = processes.find(|process| process.pid == pid && !process.account.is_root());
    let mut partners = registry.partners.all.values();
    let partner = partners.find(|partner| partner.pid == pid);
    let owners = [
        process.and_then(|process| process.owner),
        partner.map(|partner| partner.owner),
    ];
    let mut owners = owners.into_iter().flatten().peekable();
    owners.peek().is_some() && uid().is_some_and(|now| owners.any(|owner| now != Some(owner)))
}

impl<S: Sensor> Sensor for FilteredSensor<S> {
    type Error = S::Error;

    fn track(&mut self, tid: u32, follow: Follow) -> Result<(), Self::Error> {
        self.inner.track(tid, follow)
    }

    /// As far as it is of the same user as `of`, and within the quota of the account that `of` is
    /// charged to; if not, it is left out, with the reason. A thread of the kernel works for all
    /// users, and is no user's.
    fn track_partner(&mut self, tid: u32, of: TaskId) -> Result<(), Self::Error> {
        let target = Target::find(tid, None);
        let mut registry = self.registry.borrow_mut();
        let admitted = match target {
            Ok(target) => registry
                .admit_partner(&target.task, target.uid, of)
                .map(|()| target.task.id),
            Err(Fault::NoSuchTask(_)) => Err(None),
            Err(_) if onbeat_act::task::is_of_kernel(tid) => Err(None),
            Err(fault) => Err(Some(fault.to_string())),
        };
        match admitted {
            Ok(task) => self.inner.track_partner(tid, of).inspect_err(|_| {
                registry.drop_partner(task);
            }),
            Err(why) => {
                let payer = registry.party(of).payer;
                let left_out = LeftOut {
                    tid,
                    of,
                    payer,
                    why,
                };
                self.left_out.push(left_out);
                Ok(())
            }
        }
    }

    fn untrack(&mut self, tasks: &[TaskId]) -> Result<(), Self::Error> {
        let mut registry = self.registry.borrow_mut();
        for task in tasks {
            registry.dismiss_partner(*task);
        }
        drop(registry);
        self.inner.untrack(tasks)
    }

    fn poll(&mut self, timeout: Span, events: &mut Vec<Event>) -> Result<Flow, Self::Error> {
        let from = events.len();
        let now = self.inner.now();
        self.turns_by(now + timeout);
        let flow = self.inner.poll(timeout, events);
        self.turns_by(self.inner.now());
        let flow = flow?;
        self.filter(events, from)?;
        // A task that goes without is asked for again in the turn that follows.
        self.registry.borrow_mut().meter(self.inner.now());
        Ok(flow)
    }

    fn now(&self) -> Instant {
        self.inner.now()
    }

    fn assign(&mut self, task: TaskId, application: u32) {
        self.inner.assign(task, application);
    }

    fn spent(&mut self, application: u32) -> Option<Span> {
        self.inner.spent(application)
    }

    fn executed(&mut self, task: TaskId) -> Option<Span> {
        self.inner.executed(task)
    }

    fn tell_programs(&mut self, names: &BTreeSet<String>) -> Result<(), Self::Error> {
        self.inner.tell_programs(names)
    }

    fn programs(&mut self) -> Result<Vec<RunningProgram>, S::Error> {
        self.inner.programs()
    }

    fn take_begun(&mut self) -> Vec<RunningProgram> {
        self.inner.take_begun()
    }

    fn others_real_time(&mut self) -> Option<Instant> {
        self.inner.others_real_time()
    }

    fn idle(&mut self) -> Option<Vec<Span>> {
        self.inner.idle()
    }
}

#[cfg(test)]
mod tests;
