//! A thread whose rhythm is known: its beats are tracked, its jobs cut out, their demand kept, and
//! the runtime that its next jobs need predicted.

use onbeat_decide::predictor::{Parameters, Predictor};
use onbeat_infer::jobs::{self, Separator, Substitutes};
use onbeat_infer::period::{Beat, Tracker};
use onbeat_model::{Burst, Demand, Instant, Job, Reservation, Rhythm, Span};

use crate::EstimationSettings;

/// Periods that differ by less than one part in this number are the same rate.
const SAME_RATE: u64 = 20;

pub(super) struct Lock {
    tracker: Tracker,
    separator: Separator,
    substitutes: Substitutes,
    from: Option<RhythmSource>,
    demand: Demand,
    predictor: Box<dyn Predictor>,
    since: Instant,
    astray: Option<Instant>,
    lost: bool,
}

#[derive(Clone, Copy, Debug)]
enum RhythmSource {
    Declared(Rhythm),
    Derived(Rhythm),
}

impl Lock {
    /// Starts from the bursts in which `rhythm` was found, for the jobs in them say what it needs.
    pub(super) fn new(
        rhythm: Rhythm,
        bursts: impl Iterator<Item = Burst>,
        now: Instant,
        settings: &EstimationSettings,
    ) -> Self {
        let mut kept = Self {
            tracker: Tracker::new(rhythm),
            separator: Separator::new(rhythm),
            substitutes: Substitutes::default(),
            from: None,
            demand: Demand::new(settings.parameters.window),
            predictor: (settings.predictor)(settings.parameters),
            since: now,
            astray: None,
            lost: false,
        };
        // The predictor is told of the last one only: how much the earlier ones, among which the
        // program started, differed from each other, is not to be expected again.
        let mut last = None;
        for burst in bursts {
            if let Some(job) = kept.separator.hear(&burst) {
                kept.demand.hear(&job);
                last = Some(job);
            }
        }
        if let Some(job) = &last {
            kept.predictor.job(job, &kept.demand);
        }
        kept
    }

    /// Starts from what the thread says itself: its rhythm, and what share of its jobs may overrun,
    /// if it said that.
    pub(super) fn declared(
        rhythm: Rhythm,
        overruns: Option<f64>,
        now: Instant,
        settings: &EstimationSettings,
    ) -> Self {
        let parameters = Parameters {
            overruns: overruns.unwrap_or(settings.parameters.overruns),
            ..settings.parameters
        };
        let settings = EstimationSettings {
            parameters,
            ..*settings
        };
        Self {
            from: Some(RhythmSource::Declared(rhythm)),
            ..Self::new(rhythm, std::iter::empty(), now, &settings)
        }
    }

    /// Starts from the bursts of a thread that works on the path of another one, in whose `rhythm`.
    pub(super) fn derived(
        rhythm: Rhythm,
        bursts: impl Iterator<Item = Burst>,
        now: Instant,
        settings: &EstimationSettings,
    ) -> Self {
        Self {
            from: Some(RhythmSource::Derived(rhythm)),
            ..Self::new(rhythm, bursts, now, settings)
        }
    }

    pub(super) const fn is_declared(&self) -> bool {
        matches!(self.from, Some(RhythmSource::Declared(_)))
    }

    pub(super) const fn is_derived(&self) -> bool {
        matches!(self.from, Some(RhythmSource::Derived(_)))
    }

    pub(super) fn derive(&mut self, rhythm: Rhythm) {
        let former = self.rhythm().period;
        self.from = Some(RhythmSource::Derived(rhythm));
        self.separator.retune(rhythm);
        self.change_rate(former, rhythm.period);
    }

    /// At another period than before, the demand is cleared. True if it is.
    fn change_rate(&mut self, former: Span, period: Span) -> bool {
        let is_other = !same_period(former, period);
        if is_other {
            self.demand.clear();
            self.predictor.rate_changed(period);
        }
        is_other
    }

    /// Takes in a job that the thread marked. Returns true if its period is another one; the demand
    /// at the old one is then cleared.
    pub(super) fn job_declared(&mut self, job: &Job, rhythm: Rhythm) -> bool {
        let former = self.rhythm().period;
        self.from = Some(RhythmSource::Declared(rhythm));
        let is_other = self.change_rate(former, rhythm.period);
        self.learn(job);
        is_other
    }

    /// The deadline that the thread means by its notification. If it does not mark its jobs, the
    /// burst under way is cut there.
    pub(super) fn missed(&mut self, at: Instant, woke: Instant) -> Instant {
        let rhythm = self.rhythm();
        if self.is_declared() {
            return rhythm.phase + rhythm.period;
        }
        self.substitutes.missed(at, woke, &rhythm);
        let latest = rhythm.release_before(at + rhythm.period / 4);
        latest.max(jobs::deadline(&rhythm, woke))
    }

    /// The pieces of a burst that notifications cut; none without any.
    pub(super) fn cut(&mut self, burst: &Burst) -> Option<Vec<Burst>> {
        (!self.substitutes.is_empty()).then(|| self.substitutes.pieces(burst))
    }

    fn learn(&mut self, job: &Job) {
        self.demand.hear(job);
        self.predictor.job(job, &self.demand);
    }

    pub(super) fn rhythm(&self) -> Rhythm {
        match self.from {
            Some(RhythmSource::Declared(rhythm) | RhythmSource::Derived(rhythm)) => rhythm,
            None => self.tracker.rhythm(),
        }
    }

    /// The job that it ends, if any; and whether from this burst on the thread no longer keeps its
    /// beat.
    pub(super) fn burst(&mut self, burst: &Burst) -> (Option<Job>, bool) {
        let went_astray = !self.is_derived() && {
            let beat = self.tracker.hear(burst);
            self.follow(beat, burst.woke)
        };
        let job = self.separator.hear(burst);
        if let Some(job) = &job
            && self.astray.is_none()
        {
            self.learn(job);
            self.separator.retune(self.rhythm());
        }
        (job.filter(|job| job.woke >= self.since), went_astray)
    }

    fn follow(&mut self, beat: Beat, at: Instant) -> bool {
        if beat == Beat::Kept {
            return false;
        }
        self.lost |= beat == Beat::Lost;
        let news = self.astray.is_none();
        self.astray.get_or_insert(at);
        news
    }

    pub(super) const fn astray(&self) -> Option<Instant> {
        self.astray
    }

    pub(super) fn exhausted(&mut self, at: Instant, held: Reservation) {
        self.predictor.exhausted(at, held);
    }

    /// An analysis has found the same period again. A first guess, from while the thread caught up
    /// or changed its rate, is replaced.
    pub(super) fn confirm(&mut self, rhythm: Rhythm) {
        let guess = self.rhythm();
        if self.lost || rhythm.jitter * 2 < guess.jitter {
            self.tracker = Tracker::new(rhythm);
            self.separator.retune(rhythm);
            self.lost = false;
        }
        self.astray = None;
    }

    pub(super) fn adopt(&mut self, rhythm: Rhythm) {
        let former = self.rhythm().period;
        self.tracker = Tracker::new(rhythm);
        self.separator.retune(rhythm);
        self.astray = None;
        self.lost = false;
        self.change_rate(former, rhythm.period);
    }

    /// The thread rested and goes on: its demand is remembered.
    pub(super) fn resume(&mut self, rhythm: Rhythm, now: Instant) {
        self.adopt(rhythm);
        self.separator = Separator::new(rhythm);
        self.since = now;
    }

    pub(super) fn speed_changed(&mut self, factor: f64) {
        self.separator.speed_changed(factor);
        self.demand.scale(factor);
        self.predictor.speed_changed(factor);
    }

    pub(super) fn runtime(&self) -> Option<Span> {
        self.predictor.runtime(self.rhythm().period)
    }

    /// The part of that which is more than catching up after an overrun.
    pub(super) fn lasting(&self) -> Option<Span> {
        self.predictor.lasting(self.rhythm().period)
    }

    pub(super) fn finish(&mut self) -> Option<Job> {
        let since = self.since;
        self.separator.finish().filter(|job| job.woke >= since)
    }
}

pub(crate) fn same_period(a: Span, b: Span) -> bool {
    a.abs_diff(b) * SAME_RATE <= a.max(b)
}
