//! From what is heard of a thread to its period: whether it has one, how sure that is, and for how
//! long it is believed.
//!
//! [`Estimator`] is this folder's state of one thread: bursts and marks go in, and what
//! follows comes out.

mod analysis;
mod declared;
mod lock;
mod verification;

use onbeat_decide::notification::Notification;
use onbeat_infer::pipeline;
use onbeat_model::{Burst, Instant, Reservation, Rhythm, Span};

use crate::report::account::ThreadAccount;
use crate::{EstimationSettings, Why};
use analysis::Analysis;
use declared::Declared;
use lock::Lock;
use verification::Verification;

pub(crate) use analysis::AnalysisQueue;
pub(crate) use lock::same_period;

/// A thread that has not blocked for this many periods computes all the time, and one without an
/// event, or off its beat, has lost it.
const PERIODS: u64 = 10;
/// The same as a time, for short periods.
const LONGEST_JOB: Span = Span::from_ms(400);
const SILENCE: Span = Span::from_ms(1500);

pub(crate) struct Estimator {
    state: Estimation,
    analysis: Analysis,
    verification: Verification,
    declared: Option<Box<Declared>>,
    notification: Notification,
    heard: HeardTimes,
    last_rhythm: Option<Rhythm>,
}

struct HeardTimes {
    first: Instant,
    last: Instant,
    blocked: Option<Instant>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum News {
    None,
    /// A job ended. If it was late, it had waited so long for a CPU.
    Job(Span),
    Demand(Option<Why>),
    /// The thread has a period, or another one: the reason to give it a reservation.
    Locked(Why),
    Lost(Why),
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct JobDemand {
    pub(crate) job: Span,
    pub(crate) period: Span,
    /// The period is that of the pipeline in which the thread works.
    pub(crate) is_derived: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Whole,
    /// The part that is more than catching up after an overrun.
    Lasting,
}

impl Estimator {
    pub(crate) fn new(at: Instant) -> Self {
        Self {
            state: Estimation::default(),
            analysis: Analysis::new(),
            verification: Verification::default(),
            declared: None,
            notification: Notification::default(),
            heard: HeardTimes {
                first: at,
                last: at,
                blocked: None,
            },
            last_rhythm: None,
        }
    }

    pub(crate) const fn is_locked(&self) -> bool {
        self.state.is_locked()
    }

    pub(crate) const fn first_heard(&self) -> Instant {
        self.heard.first
    }

    pub(crate) const fn last_heard(&self) -> Instant {
        self.heard.last
    }

    pub(crate) fn rhythm(&self) -> Option<Rhythm> {
        let now = self.state.lock().map(Lock::rhythm);
        now.or(self.last_rhythm)
    }

    /// The rhythm of its own that it has now, and not a pipeline's.
    pub(crate) fn own_rhythm(&self) -> Option<Rhythm> {
        let lock = self.state.lock().filter(|lock| !lock.is_derived())?;
        Some(lock.rhythm())
    }

    /// Its bursts of the last seconds, as far as anything is made of them.
    pub(crate) fn bursts(&self) -> impl DoubleEndedIterator<Item = Burst> {
        self.analysis.analyser.bursts()
    }

    pub(crate) fn take_analysis_due(&mut self) -> bool {
        self.analysis.take_due()
    }

    pub(crate) fn burst(
        &mut self,
        burst: &Burst,
        account: &mut ThreadAccount,
        follows_others: bool,
    ) -> News {
        if let Some(blocked) = self.heard.blocked.replace(burst.blocked) {
            self.notification
                .blocked(burst.woke.since(blocked), burst.response());
        }
        self.heard.last = burst.blocked;
        account.burst(burst);
        if let Some(heard) = self.burst_declared(burst) {
            return heard;
        }
        let has_rhythm = self.is_locked();
        self.analysis.burst(burst, has_rhythm, follows_others);
        let Some(lock) = self.state.lock_mut() else {
            return News::None;
        };
        match lock.cut(burst) {
            None => self.piece(burst, account),
            Some(pieces) => pieces.iter().fold(News::None, |heard, piece| {
                match self.piece(piece, account) {
                    News::None => heard,
                    news => news,
                }
            }),
        }
    }

    /// Takes in a burst of a locked thread, or the pieces of one that its marks make.
    fn piece(&mut self, burst: &Burst, account: &mut ThreadAccount) -> News {
        let Some(lock) = self.state.lock_mut() else {
            return News::None;
        };
        let planned = self.notification.is_in_appeal().then(|| lock.runtime());
        let (job, went_astray) = lock.burst(burst);
        if went_astray {
            let period = lock.rhythm().period;
            self.analysis.listen_to_news(self.heard.last, period);
        }
        let Some(job) = &job else {
            return News::None;
        };
        if let Some(planned) = planned.flatten() {
            self.notification.job(job.ended, job.executed, planned);
        }
        account.job(job);
        News::Job(if job.missed() { job.waited } else { Span::ZERO })
    }

    /// Takes in a budget that was exhausted at `at`, and was `stretch` times the necessary one.
    /// True if that is news for the predictor.
    pub(crate) fn exhausted(
        &mut self,
        at: Instant,
        held: Option<Reservation>,
        stretch: f64,
    ) -> bool {
        self.heard.last = self.heard.last.max(at);
        if let Some(declared) = &mut self.declared {
            declared.exhausted();
        }
        let (Some(held), Some(lock)) = (held, self.state.lock_mut()) else {
            return false;
        };
        let period = lock.rhythm().period;
        let per_job = held.bandwidth().runtime_in(period).scale(stretch.recip());
        if let Ok(held) = Reservation::implicit(per_job, period) {
            lock.exhausted(at, held);
        }
        true
    }

    /// Analyses the bursts heard up to `now`: the rhythm found, if any; none if it is not to be
    /// analysed.
    pub(crate) fn analyse(&mut self, now: Instant, follows_others: bool) -> Option<Option<Rhythm>> {
        self.analysis.begin();
        let lock = self.state.lock();
        if lock.is_some_and(Lock::is_declared) || follows_others {
            return None;
        }
        if let Some(since) = lock.and_then(Lock::astray) {
            self.analysis.forget_before(since);
        }
        Some(self.analysis.strongest(now))
    }

    pub(crate) fn is_armed(&self) -> bool {
        self.analysis.armed().is_some()
    }

    pub(crate) fn conclude(
        &mut self,
        found: Option<Rhythm>,
        now: Instant,
        settings: &EstimationSettings,
    ) -> News {
        match (self.is_locked(), found) {
            (false, Some(rhythm)) => self.believe(rhythm, now, settings),
            (false, None) => {
                self.analysis.failed(now);
                News::None
            }
            (true, found) => self.verify(found, now),
        }
    }

    pub(crate) fn demand(&self, part: Part, stretch: f64) -> Option<JobDemand> {
        let lock = self.state.lock()?;
        let runtime = match part {
            Part::Whole => lock.runtime(),
            Part::Lasting => lock.lasting(),
        };
        let raised = runtime?.scale(self.notification.factor());
        Some(JobDemand {
            job: raised.scale(stretch),
            period: lock.rhythm().period,
            is_derived: lock.is_derived(),
        })
    }

    /// It has been silent long enough to rest: a film is paused. Its demand is remembered. Or it
    /// has run without blocking for long enough to have lost its rhythm.
    pub(crate) fn rest(&mut self, now: Instant) -> Option<Why> {
        let period = self.state.lock()?.rhythm().period;
        let since = now.since(self.heard.last);
        if since >= patience(period) {
            self.last_rhythm = self.rhythm();
            self.state.rest();
            self.analysis.clear();
            return Some(Why::Idle { since });
        }
        if now < self.computes_at()? {
            return None;
        }
        self.forget_rhythm();
        self.analysis.clear();
        self.heard.blocked.map(|blocked| Why::NoLongerBlocks {
            since: now.since(blocked),
        })
    }

    /// When to look whether it rests, or computes without a pause: it may block right now for the
    /// last time.
    pub(crate) fn rests_at(&self, now: Instant) -> Option<Instant> {
        let period = self.state.lock()?.rhythm().period;
        let computes = self.computes_at().unwrap_or(now + longest_job(period));
        Some(computes.min(self.heard.last + patience(period)))
    }

    /// When it will have lost its rhythm by computing without a pause, unless it says itself where
    /// its jobs are. A thread without an event since it blocked is not known to compute.
    fn computes_at(&self) -> Option<Instant> {
        let lock = self.state.lock().filter(|lock| !lock.is_declared())?;
        let blocked = self.heard.blocked;
        let blocked = blocked.filter(|&blocked| self.heard.last > blocked)?;
        Some(blocked + longest_job(lock.rhythm().period))
    }

    /// True if its last event is recent compared with the time after which it counts as silent.
    pub(crate) fn ran_lately(&self, now: Instant) -> bool {
        let lock = self.state.lock();
        lock.is_some_and(|lock| now.since(self.heard.last) < patience(lock.rhythm().period) / 2)
    }

    pub(crate) fn speed_changed(&mut self, factor: f64) {
        if let Some(lock) = self.state.any_lock_mut() {
            lock.speed_changed(factor);
        }
    }

    pub(crate) fn finish_job(&mut self, account: &mut ThreadAccount) {
        if let Some(job) = self.state.lock_mut().and_then(Lock::finish) {
            account.job(&job);
        }
    }

    pub(crate) fn forget(&mut self) {
        self.last_rhythm = self.rhythm();
        self.state.forget();
    }

    /// The thread works in a pipeline whose head has this rhythm: its own work begins when the
    /// longest rest in each period ends. True if it had no rhythm before.
    pub(crate) fn derive(
        &mut self,
        head: Rhythm,
        now: Instant,
        settings: &EstimationSettings,
    ) -> bool {
        let wakeups = self.bursts().map(|burst| burst.woke);
        let begin = pipeline::begin_of_work(wakeups, head.period);
        let from_then = Rhythm {
            phase: begin,
            ..head
        };
        let rhythm = Rhythm {
            phase: from_then.release_before(now),
            ..head
        };
        if let Some(lock) = self.state.lock_mut() {
            lock.derive(rhythm);
            return false;
        }
        let lock = Lock::derived(rhythm, self.bursts(), now, settings);
        self.state.lock_on(|_| Box::new(lock));
        true
    }

    pub(crate) fn leave_pipeline(&mut self) {
        self.last_rhythm = self.rhythm();
        self.state.forget();
    }
}

pub(super) fn longest_job(period: Span) -> Span {
    (period * PERIODS).max(LONGEST_JOB)
}

/// The longest time that a thread may be off its beat, or without an event.
pub(super) fn patience(period: Span) -> Span {
    (period * PERIODS).max(SILENCE)
}

// A thread's period: what is known of it. The enum holds its data, so that leaving a state drops
// all that belonged to it. Only its functions go from one state to another.
//
// ```text
//   Acquiring ───────── lock_on ─────────▶ Locked ───────┐ lock_on: the program's
//      ▲ ◀────────────── lose ────────────── │ ▲ ◀───────┘ marks
//      │                                rest ▼ │ lock_on
//      └─ (any) forget, leave_pipeline      Dormant
// ```

#[derive(Default)]
enum Estimation {
    /// Too little was heard, or no period is in it.
    #[default]
    Acquiring,
    Locked(Box<Lock>),
    Dormant(Box<Lock>),
}

impl Estimation {
    const fn is_locked(&self) -> bool {
        matches!(self, Self::Locked(_))
    }

    fn lock(&self) -> Option<&Lock> {
        match self {
            Self::Locked(lock) => Some(lock),
            _ => None,
        }
    }

    fn lock_mut(&mut self) -> Option<&mut Lock> {
        match self {
            Self::Locked(lock) => Some(lock),
            _ => None,
        }
    }

    fn dormant(&self) -> Option<&Lock> {
        match self {
            Self::Dormant(lock) => Some(lock),
            _ => None,
        }
    }

    fn any_lock_mut(&mut self) -> Option<&mut Lock> {
        match self {
            Self::Locked(lock) | Self::Dormant(lock) => Some(lock),
            Self::Acquiring => None,
        }
    }

    /// The thread has a period: `lock` makes its lock, from the dormant one if there is any.
    fn lock_on(&mut self, lock: impl FnOnce(Option<Box<Lock>>) -> Box<Lock>) {
        let dormant = match std::mem::take(self) {
            Self::Acquiring | Self::Locked(_) => None,
            Self::Dormant(lock) => Some(lock),
        };
        *self = Self::Locked(lock(dormant));
    }

    fn rest(&mut self) {
        *self = match std::mem::take(self) {
            Self::Locked(lock) => Self::Dormant(lock),
            other => other,
        };
    }

    fn lose(&mut self) {
        if self.is_locked() {
            self.forget();
        }
    }

    /// Nothing is known of the thread from now on, or its period was another's.
    fn forget(&mut self) {
        *self = Self::Acquiring;
    }
}
