//! LFS++: a period analyser that looks at the wakeups of the last H now and then, and a bandwidth
//! controller that samples the CPU time each S (section 5).

use onbeat_decide::predictor::{Parameters, Predictor, Rate};
use onbeat_infer::period::Tracker;
use onbeat_model::{Burst, Demand, Instant, Job, Reservation, Rhythm, Span};

use super::Controls;
use crate::{Analyser, Config};

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LfsPlusPlus {
    /// alpha, epsilon, `k_max`, `f_min`, `f_max`, delta f and H (section 5.2).
    pub analyser: Config,
    /// From one analysis to the next: longer than S, as the analysis costs more (section 4.2).
    pub analysis: Span,
    /// S, N, j and x (section 5.3): `sampling`, `window`, `above` and `spread`.
    pub parameters: Parameters,
    /// The parts that are not the paper's.
    pub additions: Additions,
}

impl Default for LfsPlusPlus {
    fn default() -> Self {
        Self {
            analyser: Config::default(),
            analysis: Span::from_secs(2),
            parameters: Parameters::default(),
            additions: Additions::default(),
        }
    }
}

/// The parts that onbeat's loop has and the paper's has not; nothing by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Additions {
    /// Before the first sample the budget goes by the longest burst.
    pub first_budget: bool,
    /// An exhausted budget is raised at once, by the parameters' `boost`.
    pub raise: bool,
    /// A budget changes only if the difference is worth a system call.
    pub hysteresis: bool,
    /// The period is followed from burst to burst between two analyses.
    pub tracking: bool,
}

pub(super) struct LfsPlusPlusControl {
    settings: LfsPlusPlus,
    /// None if the parameters make no spectrum: then nothing is ever found.
    analyser: Option<Analyser>,
    rate: Rate,
    period: Option<Span>,
    tracker: Option<Tracker>,
    jobs: Demand,
    sampled: (Instant, Span),
    analysed: Instant,
}

impl LfsPlusPlusControl {
    pub(super) fn new(settings: LfsPlusPlus, now: Instant) -> Self {
        let parameters = Parameters {
            rate_boost: if settings.additions.raise {
                settings.parameters.boost
            } else {
                1.0
            },
            ..settings.parameters
        };
        Self {
            settings,
            analyser: Analyser::new(settings.analyser).ok(),
            rate: Rate::new(parameters),
            period: None,
            tracker: None,
            jobs: Demand::new(parameters.window),
            sampled: (now, Span::ZERO),
            analysed: now,
        }
    }

    fn job(&mut self, burst: &Burst) {
        let Additions {
            first_budget,
            raise,
            ..
        } = self.settings.additions;
        let Some(period) = self.period.filter(|_| first_budget || raise) else {
            return;
        };
        if first_budget {
            self.jobs.record(burst.executed);
        }
        let job = Job::of(burst, burst.woke, burst.woke + period);
        self.rate.job(&job, &self.jobs);
    }

    /// An application that is declared non-periodic (step 4) keeps the period that it had: the
    /// paper does not say that its reservation is given back.
    fn found(&mut self, rhythm: Rhythm) {
        self.period = Some(rhythm.period);
        if self.settings.additions.tracking {
            self.tracker = Some(Tracker::new(rhythm));
        }
    }
}

impl Controls for LfsPlusPlusControl {
    fn burst(&mut self, burst: &Burst) {
        if let Some(analyser) = &mut self.analyser {
            analyser.hear_at(burst.woke);
        }
        if let Some(tracker) = &mut self.tracker {
            tracker.hear(burst);
            self.period = Some(tracker.rhythm().period);
        }
        self.job(burst);
    }

    fn exhausted(&mut self, at: Instant, held: Reservation) {
        self.rate.exhausted(at, held);
    }

    fn due(&self) -> Instant {
        let sample = self.sampled.0 + self.settings.parameters.sampling;
        sample.min(self.analysed + self.settings.analysis)
    }

    fn look(&mut self, now: Instant, executed: Span) {
        let (last, before) = self.sampled;
        if now >= last + self.settings.parameters.sampling {
            self.rate.sampled(executed - before, now.since(last));
            self.sampled = (now, executed);
        }
        if now >= self.analysed + self.settings.analysis {
            self.analysed = now;
            let found = self.analyser.as_ref().and_then(Analyser::analyse);
            if let Some(rhythm) = found {
                self.found(rhythm);
            }
        }
    }

    fn wanted(&self) -> Option<Reservation> {
        let period = self.period?;
        Reservation::implicit(self.rate.runtime(period)?, period).ok()
    }
}
