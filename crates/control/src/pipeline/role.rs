//! A thread's place on the paths of others.

use onbeat_infer::pipeline::{self, Contacts};
use onbeat_model::{Burst, Instant, Rhythm, Span, TaskId};

use crate::estimation::lock::{Lock, same_period};
use crate::task::Thread;
use crate::{Settings, Stage};

/// The most paths of a thread that are known.
pub(crate) const HEADS: usize = 4;

/// See the file's head. It is empty for most threads.
#[derive(Debug, Default)]
pub(crate) struct Path(Option<Box<Known>>);

#[derive(Debug, Default)]
struct Known {
    partner: Option<Watched>,
    contacts: Vec<(TaskId, Contacts)>,
    stage: Option<Stage>,
    last_stage: Option<Stage>,
    off_since: Option<Instant>,
    /// It is no stage before then.
    off_until: Instant,
}

/// The record of a thread that is tracked because it may work for another one.
#[derive(Clone, Debug)]
pub(crate) struct Watched {
    /// For whom: the heads of the paths that it works on; who it was found with, until there are
    /// any.
    pub(crate) of: Vec<TaskId>,
    /// Since when one of those has had a rhythm, or has had none.
    pub(crate) since: Instant,
    pub(crate) beats: bool,
    /// Its wakeups of threads of the path. A thread that wakes none of them delays none.
    pub(crate) waited_for: u32,
    last_woke: Instant,
    begins_by_itself: bool,
}

impl Watched {
    /// Who woke its user so often is waited for.
    const WAITED_FOR: u32 = 3;

    /// For a thread that is watched for `of` since `since`.
    pub(crate) fn new(of: TaskId, beats: bool, since: Instant) -> Self {
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
    pub(crate) fn is_waited_for(&self, jobs: u64) -> bool {
        u64::from(self.waited_for) * 4 >= jobs
    }

    /// Takes in a wakeup; after such a `rest` it begins a job.
    pub(crate) fn woke(&mut self, burst: &Burst, rest: Span) {
        if burst.woke.since(self.last_woke) >= rest {
            self.begins_by_itself = burst.waker == 0;
        }
        self.last_woke = self.last_woke.max(burst.woke);
    }

    /// True if only a timer wakes it for its jobs.
    pub(crate) fn begins_by_itself(&self) -> bool {
        self.begins_by_itself
    }

    /// True if the threads that it works for show no rhythm, perhaps because this one starves.
    fn may_be_tried(&self) -> bool {
        !self.beats && self.waited_for >= Self::WAITED_FOR
    }
}

impl Path {
    /// True if it works for no other thread.
    pub(crate) fn is_plain(&self) -> bool {
        !self.is_partner() && self.stage().is_none()
    }

    pub(crate) fn is_partner(&self) -> bool {
        self.partner().is_some()
    }

    pub(crate) fn partner(&self) -> Option<&Watched> {
        self.0.as_ref()?.partner.as_ref()
    }

    pub(crate) fn partner_mut(&mut self) -> Option<&mut Watched> {
        self.0.as_mut()?.partner.as_mut()
    }

    pub(crate) fn set_partner(&mut self, partner: Option<Watched>) {
        if partner.is_some() || self.0.is_some() {
            self.known().partner = partner;
        }
    }

    pub(crate) fn stage(&self) -> Option<Stage> {
        self.0.as_ref()?.stage
    }

    /// The stage that it is, or was last.
    pub(crate) fn last_stage(&self) -> Option<Stage> {
        let known = self.0.as_ref()?;
        known.stage.or(known.last_stage)
    }

    pub(crate) fn may_be_tried(&self) -> bool {
        self.partner().is_none_or(Watched::may_be_tried)
    }

    /// Counts a contact at `at` with the path of `head`, which has this `period`.
    pub(crate) fn contact(&mut self, head: TaskId, period: Span, at: Instant) {
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

    /// Its contacts with each head.
    pub(crate) fn contacts(&self) -> &[(TaskId, Contacts)] {
        self.0.as_ref().map_or(&[], |known| &known.contacts)
    }

    /// Forgets its contacts with threads that are heads no longer.
    pub(crate) fn keep_contacts(&mut self, is_head: impl Fn(TaskId) -> bool) {
        if let Some(known) = &mut self.0 {
            known.contacts.retain(|(head, _)| is_head(*head));
        }
    }

    /// Since when it has no longer been sure that it is a stage, now at the latest.
    pub(crate) fn off_since(&mut self, now: Instant) -> Instant {
        *self.known().off_since.get_or_insert(now)
    }

    /// It is no stage until then.
    pub(crate) fn stay_off(&mut self, until: Instant) {
        self.known().off_until = until;
    }

    pub(crate) fn stays_off(&self, now: Instant) -> bool {
        self.0.as_ref().is_some_and(|known| now < known.off_until)
    }

    fn known(&mut self) -> &mut Known {
        self.0.get_or_insert_default()
    }
}

impl Thread {
    /// True if not its own rhythm counts, but that of others.
    pub(crate) fn follows_others(&self) -> bool {
        self.path.is_partner() || self.path.stage().is_some()
    }

    /// It has a rhythm of its own, and may be the head of a path: with which period.
    pub(crate) fn beats(&self) -> Option<Rhythm> {
        let lock = self.estimation.lock().filter(|lock| !lock.is_derived())?;
        Some(lock.rhythm())
    }

    /// It has a rhythm, or will have another one's.
    pub(crate) fn is_on_the_beat(&self) -> bool {
        self.beats().is_some() || self.follows_others()
    }

    /// It is a stage of a path whose head has this rhythm: its own work begins when the longest
    /// rest in each period ends. True if it was none before.
    pub(crate) fn lead(
        &mut self,
        stage: Stage,
        head: Rhythm,
        now: Instant,
        settings: &Settings,
    ) -> bool {
        let wakeups = self.analyser.bursts().map(|burst| burst.woke);
        let begin = pipeline::begin_of_work(wakeups, head.period);
        let rhythm = Rhythm {
            phase: Rhythm {
                phase: begin,
                ..head
            }
            .release_before(now),
            ..head
        };
        let known = self.path.known();
        known.stage = Some(stage);
        known.off_since = None;
        if let Some(lock) = self.estimation.lock_mut() {
            lock.lead(rhythm);
            return false;
        }
        let kind = self.predictor(settings);
        let lock = Lock::derived(rhythm, self.analyser.bursts(), now, kind, settings);
        self.estimation.lock_on(|_| Box::new(lock));
        true
    }

    /// It is a stage of no path any more. True if it was one.
    pub(crate) fn leave_path(&mut self) -> bool {
        let known = self.path.known();
        known.off_since = None;
        let Some(stage) = known.stage.take() else {
            return false;
        };
        known.last_stage = Some(stage);
        self.last_rhythm = self.rhythm();
        self.estimation.leave_pipeline();
        true
    }
}
