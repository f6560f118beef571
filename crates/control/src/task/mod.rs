//! The record of one tracked thread, which takes in its bursts.
//!
//! Each part of the loop has its fields of a thread here: `estimation` those about the period,
//! `allocation` the request, `enforcement` what is in force, `pipeline` whose pipeline the thread
//! works on. This file passes bursts, exhausted budgets and analyses on to them, and says when a
//! silent thread rests. The states that all parts share, and their transitions, are in `state`.

pub(crate) mod state;
pub(crate) mod table;

use onbeat_decide::hysteresis::Hysteresis;
use onbeat_decide::notification::Notification;
use onbeat_infer::period::Analyser;
use onbeat_model::{Bandwidth, Burst, Instant, Reservation, Rhythm, Span, Task};

use crate::allocation::Place;
use crate::estimation::clock::Outside;
use crate::estimation::declared::Declared;
use crate::estimation::lock::Lock;
use crate::estimation::schedule::Attempts;
use crate::estimation::starvation::Starving;
use crate::estimation::timeouts::{longest_job, patience};
use crate::estimation::verification::Verification;
use crate::pipeline::role::Path;
use crate::protection::Protection;
use crate::protection::boost::Pleading;
use crate::report::account::Figures;
use crate::{Party, Settings, Treatment, What, Why};
use state::{Enforcement, Estimation};

/// The number of last periods whose bursts are analysed after a thread went astray.
const NEWS_PERIODS: u64 = 4;
/// The fewest bursts that are analysed then.
const NEWS_BURSTS: usize = 6;

/// See the file's head.
pub(crate) struct Thread {
    pub(crate) task: Task,
    pub(crate) figures: Figures,
    pub(crate) first_heard: Instant,
    pub(crate) last_heard: Instant,
    pub(crate) place: Option<Place>,
    pub(crate) party: Party,
    pub(crate) enforcement: Enforcement,
    pub(crate) refusals: u32,
    pub(crate) hysteresis: Hysteresis,
    pub(crate) asked: Option<Why>,
    /// Its request waits for the next round.
    pub(crate) waits: bool,
    pub(crate) sampled: Option<(Instant, Span)>,
    /// A requested reservation, whatever its rhythm.
    pub(crate) fixed: Option<Reservation>,
    /// The last decision.
    pub(crate) last_decision: Option<(What, Why)>,
    /// The most that its owner may have for it, for now.
    pub(crate) ceiling: Option<Bandwidth>,
    /// It is not tracked, and here only because of its reservation.
    pub(crate) unheard: bool,
    /// Its treatment, once that is known.
    pub(crate) treatment: Option<Treatment>,
    /// A timer is set to look at it.
    pub(crate) looked_after: bool,
    /// The last check of its reservation.
    pub(crate) checked: Instant,
    /// A timer is set to sample it.
    pub(crate) is_sampled: bool,
    /// Its notifications of missed deadlines while it had no reservation.
    pub(crate) pleading: Option<Box<Pleading>>,
    /// Its protection as one of its application's threads.
    pub(crate) protection: Protection,
    /// Its place on others' paths.
    pub(crate) path: Path,
    /// Its wakeups from outside of its process.
    pub(crate) outside: Outside,
    pub(crate) analysis: Analysis,
    pub(crate) analyser: Analyser,
    pub(crate) attempts: Attempts,
    pub(crate) estimation: Estimation,
    pub(crate) starving: Starving,
    pub(crate) verification: Verification,
    pub(crate) declared: Option<Box<Declared>>,
    pub(crate) notification: Notification,
    /// End of its last burst.
    pub(crate) blocked: Option<Instant>,
    pub(crate) last_rhythm: Option<Rhythm>,
}

/// Whether the thread is worth an analysis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Analysis {
    NotDue,
    Due,
    Queued,
}

/// The effect of a burst.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Heard {
    /// Nothing for now.
    Nothing,
    /// A job ended.
    Job,
    /// It has no rhythm any more.
    Lost(Why),
    /// The thread starves, which keeps it from showing a rhythm.
    Starves(Why),
}

/// The outcome of an analysis.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Outcome {
    /// Nothing new.
    Same,
    /// The thread is to have a reservation, for this reason.
    Plan(Why),
    /// The thread lost the rhythm that it showed on probation: it is on probation again.
    TryAgain(Why),
    /// The thread has no rhythm any more.
    Released(Why),
}

impl Thread {
    pub(crate) fn new(task: Task, at: Instant, settings: &Settings) -> Self {
        Self {
            task,
            figures: Figures::default(),
            first_heard: at,
            last_heard: at,
            place: None,
            party: (settings.parties)(task.id),
            enforcement: Enforcement::default(),
            refusals: 0,
            hysteresis: Hysteresis::new(settings.thresholds),
            asked: None,
            waits: false,
            sampled: None,
            fixed: None,
            last_decision: None,
            ceiling: None,
            unheard: false,
            treatment: None,
            looked_after: false,
            checked: at,
            is_sampled: false,
            pleading: None,
            protection: Protection::default(),
            path: Path::default(),
            outside: Outside::default(),
            analysis: Analysis::NotDue,
            analyser: Analyser::new(settings.analysis),
            attempts: Attempts::new(),
            estimation: Estimation::default(),
            starving: Starving::default(),
            verification: Verification::default(),
            declared: None,
            notification: Notification::default(),
            blocked: None,
            last_rhythm: None,
        }
    }

    pub(crate) const fn is_on_probation(&self) -> bool {
        self.estimation.probation().is_some()
    }

    pub(crate) const fn is_locked(&self) -> bool {
        self.estimation.is_locked()
    }

    /// The reservation in force.
    pub(crate) const fn held(&self) -> Option<Reservation> {
        self.enforcement.held()
    }

    /// True once each time that the thread has become worth an analysis.
    pub(crate) fn analysis_due(&mut self) -> bool {
        let due = self.analysis == Analysis::Due;
        if due {
            self.analysis = Analysis::Queued;
        }
        due
    }

    /// Takes in a burst.
    pub(crate) fn burst(&mut self, burst: &Burst, settings: &Settings) -> Heard {
        if let Some(blocked) = self.blocked.replace(burst.blocked) {
            self.notification
                .blocked(burst.woke.since(blocked), burst.response());
        }
        if let Some(pleading) = &mut self.pleading {
            pleading.burst(burst.woke, burst.blocked);
        }
        self.last_heard = burst.blocked;
        self.figures.burst(burst);
        if let Some(heard) = self.burst_declared(burst) {
            return heard;
        }
        self.analyser.hear(burst);
        let is_worth_it = self.attempts.heard(burst.blocked)
            || burst.expiry.is_some() && !self.is_locked() && self.armed(settings).is_some();
        if is_worth_it && self.analysis == Analysis::NotDue && !self.follows_others() {
            self.analysis = Analysis::Due;
        }
        let Some(lock) = self.estimation.lock_mut() else {
            return self.starve(burst, settings);
        };
        match lock.cut(burst) {
            None => self.piece(burst),
            Some(pieces) => {
                pieces
                    .iter()
                    .fold(Heard::Nothing, |heard, piece| match self.piece(piece) {
                        Heard::Nothing => heard,
                        news => news,
                    })
            }
        }
    }

    /// Takes in a burst of a locked thread, or the pieces of one that its marks make.
    fn piece(&mut self, burst: &Burst) -> Heard {
        let Some(lock) = self.estimation.lock_mut() else {
            return Heard::Nothing;
        };
        let planned = self.notification.is_in_appeal().then(|| lock.runtime());
        let heard = lock.burst(burst);
        if heard.went_astray {
            let period = lock.rhythm().period;
            self.listen_to_news(period);
        }
        let Some(job) = &heard.job else {
            return Heard::Nothing;
        };
        if let Some(planned) = planned.flatten() {
            self.notification.job(job.ended, job.executed, planned);
        }
        self.figures.job(job);
        Heard::Job
    }

    /// Takes in a budget that was exhausted at `at`, and was `stretch` times the necessary one.
    /// True if that is news for the predictor.
    pub(crate) fn exhausted(&mut self, at: Instant, stretch: f64) -> bool {
        self.last_heard = self.last_heard.max(at);
        self.figures.exhaustions += 1;
        if let Some(word) = &mut self.declared {
            word.exhausted();
        }
        let (Some(held), Some(lock)) = (self.enforcement.held(), self.estimation.lock_mut()) else {
            return false;
        };
        let period = lock.rhythm().period;
        let per_job = held.bandwidth().runtime_in(period).scale(stretch.recip());
        if let Ok(held) = Reservation::implicit(per_job, period) {
            lock.exhausted(at, held);
        }
        true
    }

    /// Takes in a sample of its CPU time. True if it is to be sampled again.
    pub(crate) fn sample(&mut self, now: Instant, executed: Option<Span>) -> bool {
        let (Some(lock), Some(executed)) = (self.estimation.lock_mut(), executed) else {
            self.sampled = None;
            return self.is_locked();
        };
        if let Some((at, before)) = self.sampled.replace((now, executed)) {
            lock.sampled(executed - before, now.since(at));
        }
        true
    }

    /// Forgets all but the last few jobs: what was before is another tune.
    fn listen_to_news(&mut self, period: Span) {
        self.forget_before(self.last_heard - period * NEWS_PERIODS);
        self.attempts = Attempts::at_once();
        self.analysis = Analysis::Due;
    }

    /// Forgets the bursts before `since`, but not the last few.
    fn forget_before(&mut self, since: Instant) {
        self.analyser.forget_before(since, NEWS_BURSTS);
    }

    /// Analyses the bursts heard up to `now`: the period found, if any; none if it is not to be
    /// analysed.
    pub(crate) fn analyse(&mut self, now: Instant, settings: &Settings) -> Option<Option<Rhythm>> {
        self.analysis = Analysis::NotDue;
        let lock = self.estimation.lock();
        if lock.is_some_and(Lock::is_declared) || self.follows_others() {
            return None;
        }
        if let Some(since) = lock.and_then(Lock::astray) {
            self.forget_before(since);
        }
        Some(self.strongest(now, settings))
    }

    /// Acts on the result of an analysis.
    pub(crate) fn conclude(
        &mut self,
        found: Option<Rhythm>,
        now: Instant,
        settings: &Settings,
    ) -> Outcome {
        match (self.is_locked(), found) {
            (false, Some(rhythm)) => self.believe(rhythm, now, settings),
            (false, None) => {
                self.attempts.failed(now);
                Outcome::Same
            }
            (true, found) => self.verify(found, now),
        }
    }

    /// It has not run for so long that it rests: a film is paused. What it needed is remembered. Or
    /// it has not blocked for so long that it has no rhythm any more.
    pub(crate) fn rest(&mut self, now: Instant) -> Option<Why> {
        let period = self.estimation.lock()?.rhythm().period;
        let since = now.since(self.last_heard);
        if since >= patience(period) {
            self.last_rhythm = self.rhythm();
            self.estimation.rest();
            self.analyser.clear();
            self.attempts = Attempts::new();
            return Some(Why::Idle { since });
        }
        if now < self.computes_at()? {
            return None;
        }
        self.forget_rhythm();
        self.analyser.clear();
        // Its reservation was as good as a probation, and it showed no rhythm.
        self.starving.tried(now);
        self.blocked.map(|blocked| Why::NoLongerBlocks {
            since: now.since(blocked),
        })
    }

    /// When to look whether it rests, or computes without a pause: it may block right now for the
    /// last time.
    pub(crate) fn rests_at(&self, now: Instant) -> Option<Instant> {
        let period = self.estimation.lock()?.rhythm().period;
        let computes = self.computes_at().unwrap_or(now + longest_job(period));
        Some(computes.min(self.last_heard + patience(period)))
    }

    /// When to set the one timer that looks at it; none if that is set, or there is nothing to look
    /// for.
    pub(crate) fn look_due(&mut self, now: Instant) -> Option<Instant> {
        let due = self.rests_at(now).filter(|_| !self.looked_after)?;
        self.looked_after = true;
        Some(due)
    }

    /// When it will have lost its rhythm by computing without a pause, unless it says itself where
    /// its jobs are. Of who was not heard of since it blocked it is not known that it computes.
    fn computes_at(&self) -> Option<Instant> {
        let lock = self.estimation.lock().filter(|lock| !lock.is_declared())?;
        let blocked = self.blocked.filter(|&blocked| self.last_heard > blocked)?;
        Some(blocked + longest_job(lock.rhythm().period))
    }

    /// True if its last event is recent compared with the time after which it counts as silent.
    pub(crate) fn ran_lately(&self, now: Instant) -> bool {
        let lock = self.estimation.lock();
        lock.is_some_and(|lock| now.since(self.last_heard) < patience(lock.rhythm().period) / 2)
    }

    /// The CPUs have another speed now, at which what it did takes `factor` times as long.
    pub(crate) fn speed_changed(&mut self, factor: f64) {
        if let Some(lock) = self.estimation.any_lock_mut() {
            lock.speed_changed(factor);
        }
    }

    /// Counts the present job, because no event follows.
    pub(crate) fn finish_job(&mut self) {
        if let Some(job) = self.estimation.lock_mut().and_then(Lock::finish) {
            self.figures.job(&job);
        }
    }
}
