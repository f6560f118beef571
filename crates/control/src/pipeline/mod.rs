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
//! 4. A watched thread that does not become a stage, and a stage that computes all the time, are
//!    released, and watched again ever more rarely. So is a stage whose users have gone, are silent
//!    or have lost their rhythm.
//! 5. A path belongs to one user (`Party`), and has no stages of another user's. Watched threads
//!    and stages are bounded for each payer.

mod candidates;
mod review;

use onbeat_infer::pipeline::Contacts;
use onbeat_model::{Burst, Instant, Span, Task, TaskId};

use crate::estimation::same_period;
use crate::task::clock::WAKER_PERIODS;
use crate::task::{BySlot, Slot, TaskTable, TrackedThread};
use crate::{Party, PipelineSettings, Stage};
use candidates::Candidates;

pub(crate) use review::Review;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Partner {
    pub tid: u32,
    pub of: TaskId,
}

/// See the file's head. It decides which threads are watched and which are stages. The run loop
/// then decides about their reservations.
pub(crate) struct PipelineFinder {
    settings: Option<PipelineSettings>,
    roles: BySlot<Role>,
    candidates: Candidates,
    woken: Vec<Woken>,
    next: Instant,
    to_track: Vec<Partner>,
    to_untrack: Vec<TaskId>,
}

#[derive(Clone, Copy, Debug)]
struct Woken {
    at: Instant,
    task: TaskId,
    waker: u32,
}

impl PipelineFinder {
    pub(crate) fn new(settings: Option<PipelineSettings>) -> Self {
        Self {
            settings,
            roles: BySlot::default(),
            candidates: Candidates::default(),
            woken: Vec::new(),
            next: Instant::ZERO,
            to_track: Vec::new(),
            to_untrack: Vec::new(),
        }
    }

    pub(crate) fn role(&self, slot: Slot) -> &Role {
        self.roles.get(slot)
    }

    pub(crate) fn forget_role(&mut self, slot: Slot) {
        self.roles.take(slot);
    }

    fn is_outsider(&self, pid: u32) -> bool {
        let settings = self.settings.as_ref();
        // The first process brings up all others.
        pid == 1 || settings.is_some_and(|settings| settings.outsiders.contains(&pid))
    }

    pub(crate) fn woken(&mut self, burst: &Burst) {
        if burst.waker != 0 && self.settings.is_some() {
            self.woken.push(Woken {
                at: burst.woke,
                task: burst.task,
                waker: burst.waker,
            });
        }
    }

    /// The tracked `task` woke another thread `count` times, which was not tracked then.
    pub(crate) fn woke(&mut self, tasks: &TaskTable, task: TaskId, wakee: &Task, count: u64) {
        let slot = tasks.find(task);
        if self.settings.is_some()
            && let Some(slot) = slot.filter(|slot| self.is_on_path(*slot))
            && tasks.find(wakee.id).is_none()
            && !self.is_outsider(wakee.pid)
        {
            let with = (task, party(tasks, slot).payer);
            self.candidates.exchanged(wakee.id.tid, with, count);
        }
    }

    /// Takes in the contacts of this turn, in the order of their times: sensors tell of one thread
    /// after the other, and of a burst when it ends.
    pub(crate) fn hear_contacts(&mut self, tasks: &TaskTable) {
        let mut woken = std::mem::take(&mut self.woken);
        woken.sort_by_key(|woken| woken.at);
        for woken in woken.drain(..) {
            self.contact(tasks, woken);
        }
        self.woken = woken;
    }

    fn contact(&mut self, tasks: &TaskTable, woken: Woken) {
        let Some(slot) = tasks.find(woken.task) else {
            return;
        };
        let Some(waker) = tasks.find_number(woken.waker) else {
            if self.is_on_path(slot) {
                let with = (woken.task, party(tasks, slot).payer);
                self.candidates.exchanged(woken.waker, with, 1);
            }
            return;
        };
        if waker == slot {
            return;
        }
        self.contact_of(tasks, waker, slot, woken.at);
        self.contact_of(tasks, slot, waker, woken.at);
        if self.is_on_path(slot)
            && let Some(partner) = self.roles.get_mut(waker).partner_mut()
        {
            partner.waited_for = partner.waited_for.saturating_add(1);
        }
    }

    /// Notes the waker that begins a watched thread's job, after a rest of half the path's period.
    pub(crate) fn begin_of_job(&mut self, tasks: &TaskTable, slot: Slot, burst: &Burst) {
        let partner = self.role(slot).partner();
        let Some(of) = partner.and_then(|partner| partner.of.first().copied()) else {
            return;
        };
        let user = tasks.find(of);
        let path = user.and_then(|user| self.heads_of(tasks, user).into_iter().flatten().next());
        if let Some((_, period)) = path
            && let Some(partner) = self.roles.get_mut(slot).partner_mut()
        {
            partner.woke(burst, period / 2);
        }
    }

    fn contact_of(&mut self, tasks: &TaskTable, slot: Slot, other: Slot, at: Instant) {
        let (Some(thread), Some(other_thread)) = (tasks.get(slot), tasks.get(other)) else {
            return;
        };
        let is_head = other_thread.estimator.own_rhythm().is_some();
        // Another player at the same rate, which the same server draws for, is no stage of this
        // one's path.
        let partner = self.role(slot).partner();
        let begins = partner.is_some_and(Watched::begins_by_itself);
        if thread.estimator.own_rhythm().is_some() || (begins && !is_head) {
            return;
        }
        let own = thread.task.id;
        for (head, period) in self.heads_of(tasks, other).into_iter().flatten() {
            if head != own && may_work_for(tasks, slot, head) {
                self.roles.get_mut(slot).contact(head, period, at);
            }
        }
    }

    /// The heads of the paths on which a thread works, with their periods: itself, if it has a
    /// rhythm of its own.
    fn heads_of(&self, tasks: &TaskTable, slot: Slot) -> [Option<(TaskId, Span)>; HEADS] {
        let mut heads = [None; HEADS];
        let Some(thread) = tasks.get(slot) else {
            return heads;
        };
        let role = self.role(slot);
        if let (Some(rhythm), Some(first)) = (thread.estimator.own_rhythm(), heads.first_mut()) {
            *first = Some((thread.task.id, rhythm.period));
        } else if role.stage().is_some() {
            for (head, (id, contacts)) in heads.iter_mut().zip(role.contacts()) {
                *head = Some((*id, contacts.period()));
            }
        }
        heads
    }

    /// True if threads that exchange wakeups with it are worth watching.
    fn is_on_path(&self, slot: Slot) -> bool {
        let role = self.role(slot);
        !role.is_partner() || role.stage().is_some()
    }

    fn is_on_the_beat(&self, slot: Slot, thread: &TrackedThread) -> bool {
        thread.estimator.own_rhythm().is_some() || self.role(slot).follows_others()
    }
}

fn party(tasks: &TaskTable, slot: Slot) -> Party {
    let thread = tasks.get(slot);
    thread.map(|thread| thread.party).unwrap_or_default()
}

fn may_work_for(tasks: &TaskTable, slot: Slot, head: TaskId) -> bool {
    let head = tasks.with_id(head);
    head.is_some_and(|head| party(tasks, slot).may_work_for(head.party))
}

const HEADS: usize = 4;

/// See the file's head. It is empty for most threads.
#[derive(Debug, Default)]
pub(crate) struct Role(Option<Box<RoleRecord>>);

#[derive(Debug, Default)]
struct RoleRecord {
    partner: Option<Watched>,
    contacts: Vec<(TaskId, Contacts)>,
    stage: Option<Stage>,
    last_stage: Option<Stage>,
    off_since: Option<Instant>,
    off_until: Instant,
}

#[derive(Clone, Debug)]
struct Watched {
    /// For whom: the heads of the paths that it works on; the thread that it was found with, until
    /// there are any.
    of: Vec<TaskId>,
    /// Since when one of those has had a rhythm, or has had none.
    since: Instant,
    beats: bool,
    /// Its wakeups of threads of the path. A thread that wakes none of them delays none.
    waited_for: u32,
    last_woke: Instant,
    begins_by_itself: bool,
}

impl Watched {
    fn new(of: TaskId, beats: bool, since: Instant) -> Self {
        let mut users = Vec::with_capacity(HEADS + 1);
        users.push(of);
        Self {
            of: users,
            since,
            beats,
            waited_for: 0,
            last_woke: since,
            begins_by_itself: false,
        }
    }

    /// True if it woke threads of the path for at least a quarter of the path's jobs.
    fn is_waited_for(&self, jobs: u64) -> bool {
        u64::from(self.waited_for) * WAKER_PERIODS >= jobs
    }

    fn woke(&mut self, burst: &Burst, rest: Span) {
        if burst.woke.since(self.last_woke) >= rest {
            self.begins_by_itself = burst.waker == 0;
        }
        self.last_woke = self.last_woke.max(burst.woke);
    }

    /// True if only a timer wakes it for its jobs.
    fn begins_by_itself(&self) -> bool {
        self.begins_by_itself
    }
}

impl Role {
    /// True if not the thread's own rhythm counts, but that of others.
    pub(crate) fn follows_others(&self) -> bool {
        self.is_partner() || self.stage().is_some()
    }

    pub(crate) fn is_partner(&self) -> bool {
        self.partner().is_some()
    }

    fn partner(&self) -> Option<&Watched> {
        self.0.as_ref()?.partner.as_ref()
    }

    fn partner_mut(&mut self) -> Option<&mut Watched> {
        self.0.as_mut()?.partner.as_mut()
    }

    fn watch(&mut self, partner: Watched) {
        self.known().partner = Some(partner);
    }

    pub(crate) fn stage(&self) -> Option<Stage> {
        self.0.as_ref()?.stage
    }

    pub(crate) fn last_stage(&self) -> Option<Stage> {
        let known = self.0.as_ref()?;
        known.stage.or(known.last_stage)
    }

    fn contact(&mut self, head: TaskId, period: Span, at: Instant) {
        let known = self.known();
        let entry = known.contacts.iter_mut().find(|(other, _)| *other == head);
        match entry {
            Some((_, contacts)) if same_period(contacts.period(), period) => contacts.hear(at),
            Some((_, contacts)) => *contacts = Contacts::new(period, at),
            None => {
                known.contacts.truncate(HEADS - 1);
                known.contacts.push((head, Contacts::new(period, at)));
            }
        }
    }

    fn contacts(&self) -> &[(TaskId, Contacts)] {
        self.0.as_ref().map_or(&[], |known| &known.contacts)
    }

    fn keep_contacts(&mut self, is_head: impl Fn(TaskId) -> bool) {
        if let Some(known) = &mut self.0 {
            known.contacts.retain(|(head, _)| is_head(*head));
        }
    }

    /// Since when it has no longer been sure that it is a stage, now at the latest.
    fn off_since(&mut self, now: Instant) -> Instant {
        *self.known().off_since.get_or_insert(now)
    }

    fn stay_off(&mut self, until: Instant) {
        self.known().off_until = until;
    }

    fn stays_off(&self, now: Instant) -> bool {
        self.0.as_ref().is_some_and(|known| now < known.off_until)
    }

    fn serve(&mut self, stage: Stage) {
        let known = self.known();
        known.stage = Some(stage);
        known.off_since = None;
    }

    fn leave(&mut self) -> bool {
        let Some(known) = &mut self.0 else {
            return false;
        };
        known.off_since = None;
        let stage = known.stage.take();
        known.last_stage = stage.or(known.last_stage);
        stage.is_some()
    }

    fn known(&mut self) -> &mut RoleRecord {
        self.0.get_or_insert_default()
    }
}
