//! A thread's role in the pipelines of others.

use onbeat_infer::pipeline::Contacts;
use onbeat_model::{Burst, Instant, Span, TaskId};

use crate::Stage;
use crate::estimation::same_period;
use crate::task::clock::WAKER_PERIODS;

/// The most paths of a thread that are known.
pub(super) const HEADS: usize = 4;

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

/// The record of a thread that is tracked because it may work for another one.
#[derive(Clone, Debug)]
pub(super) struct Watched {
    /// For whom: the heads of the paths that it works on; the thread that it was found with, until
    /// there are any.
    pub(super) of: Vec<TaskId>,
    /// Since when one of those has had a rhythm, or has had none.
    pub(super) since: Instant,
    pub(super) beats: bool,
    /// Its wakeups of threads of the path. A thread that wakes none of them delays none.
    pub(super) waited_for: u32,
    last_woke: Instant,
    begins_by_itself: bool,
}

impl Watched {
    /// For a thread that is watched for `of` since `since`.
    pub(super) fn new(of: TaskId, beats: bool, since: Instant) -> Self {
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
    pub(super) fn is_waited_for(&self, jobs: u64) -> bool {
        u64::from(self.waited_for) * WAKER_PERIODS >= jobs
    }

    /// Takes in a wakeup; after such a `rest` it begins a job.
    pub(super) fn woke(&mut self, burst: &Burst, rest: Span) {
        if burst.woke.since(self.last_woke) >= rest {
            self.begins_by_itself = burst.waker == 0;
        }
        self.last_woke = self.last_woke.max(burst.woke);
    }

    /// True if only a timer wakes it for its jobs.
    pub(super) fn begins_by_itself(&self) -> bool {
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

    pub(super) fn partner(&self) -> Option<&Watched> {
        self.0.as_ref()?.partner.as_ref()
    }

    pub(super) fn partner_mut(&mut self) -> Option<&mut Watched> {
        self.0.as_mut()?.partner.as_mut()
    }

    pub(super) fn watch(&mut self, partner: Watched) {
        self.known().partner = Some(partner);
    }

    pub(crate) fn stage(&self) -> Option<Stage> {
        self.0.as_ref()?.stage
    }

    pub(crate) fn last_stage(&self) -> Option<Stage> {
        let known = self.0.as_ref()?;
        known.stage.or(known.last_stage)
    }

    /// Counts a contact at `at` with the path of `head`, which has this `period`.
    pub(super) fn contact(&mut self, head: TaskId, period: Span, at: Instant) {
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

    pub(super) fn contacts(&self) -> &[(TaskId, Contacts)] {
        self.0.as_ref().map_or(&[], |known| &known.contacts)
    }

    /// Forgets its contacts with threads that are heads no longer.
    pub(super) fn keep_contacts(&mut self, is_head: impl Fn(TaskId) -> bool) {
        if let Some(known) = &mut self.0 {
            known.contacts.retain(|(head, _)| is_head(*head));
        }
    }

    /// Since when it has no longer been sure that it is a stage, now at the latest.
    pub(super) fn off_since(&mut self, now: Instant) -> Instant {
        *self.known().off_since.get_or_insert(now)
    }

    pub(super) fn stay_off(&mut self, until: Instant) {
        self.known().off_until = until;
    }

    pub(super) fn stays_off(&self, now: Instant) -> bool {
        self.0.as_ref().is_some_and(|known| now < known.off_until)
    }

    pub(super) fn serve(&mut self, stage: Stage) {
        let known = self.known();
        known.stage = Some(stage);
        known.off_since = None;
    }

    pub(super) fn leave(&mut self) -> bool {
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
