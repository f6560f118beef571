//! LFS++: a period analyser that looks at the wakeups of the last H now and then, and a bandwidth
//! controller that samples the CPU time each S (section 5).

use onbeat_decide::predictor::{Parameters, Predictor};
use onbeat_model::{Burst, Instant, Reservation, Span};

use super::Controls;
use crate::predictor::Rate;
use crate::{Analyser, Config};

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LfsPlusPlus {
    /// alpha, epsilon, `k_max`, `f_min`, `f_max`, delta f and H (section 5.2).
    pub analyser: Config,
    /// From one analysis to the next: longer than S, as the analysis costs more (section 4.2).
    pub analysis: Span,
    /// S (section 5.3).
    pub sampling: Span,
    /// N, j and x: `window`, `above` and `spread`.
    pub parameters: Parameters,
}

impl Default for LfsPlusPlus {
    fn default() -> Self {
        Self {
            analyser: Config::default(),
            analysis: Span::from_secs(2),
            sampling: Rate::SAMPLING,
            parameters: Parameters::default(),
        }
    }
}

pub(super) struct LfsPlusPlusControl {
    settings: LfsPlusPlus,
    /// None if the parameters make no spectrum: then nothing is ever found.
    analyser: Option<Analyser>,
    rate: Rate,
    period: Option<Span>,
    sampled: (Instant, Span),
    analysed: Instant,
}

impl LfsPlusPlusControl {
    pub(super) fn new(settings: LfsPlusPlus, now: Instant) -> Self {
        Self {
            settings,
            analyser: Analyser::new(settings.analyser).ok(),
            rate: Rate::new(settings.parameters, settings.sampling, false),
            period: None,
            sampled: (now, Span::ZERO),
            analysed: now,
        }
    }
}

impl Controls for LfsPlusPlusControl {
    fn burst(&mut self, burst: &Burst) {
        if let Some(analyser) = &mut self.analyser {
            analyser.add_event(burst.woke);
        }
    }

    fn due(&self) -> Instant {
        let sample = self.sampled.0 + self.settings.sampling;
        sample.min(self.analysed + self.settings.analysis)
    }

    fn look(&mut self, now: Instant, executed: Span) {
        let (last, before) = self.sampled;
        if now >= last + self.settings.sampling {
            self.rate.sampled(executed - before, now.since(last));
            self.sampled = (now, executed);
        }
        if now >= self.analysed + self.settings.analysis {
            self.analysed = now;
            let found = self.analyser.as_ref().and_then(Analyser::analyse);
            // One that is declared non-periodic (step 4) keeps the period that it had: the paper
            // does not say that its reservation is given back.
            self.period = found.map(|rhythm| rhythm.period).or(self.period);
        }
    }

    fn wanted(&self) -> Option<Reservation> {
        let period = self.period?;
        Reservation::implicit(self.rate.runtime(period)?, period).ok()
    }
}
