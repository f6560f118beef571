//! AQuoSA's adaptive reservations: the program says its period and where its jobs end, and each
//! job's end sets the budget of the next (LFS++, section 7.3).

use onbeat_decide::predictor::Parameters;
use onbeat_model::{Mark, Reservation, Said, Span};

use super::Controls;
use crate::scheme::Scheme;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Adaptive {
    /// After how many jobs the coding scheme repeats: 2 where I and P frames alternate.
    pub group: usize,
    /// `window`, `above` and `spread`, for each place in the group.
    pub parameters: Parameters,
}

impl Default for Adaptive {
    /// The encoder of section 7.3.
    fn default() -> Self {
        Self {
            group: 2,
            parameters: Parameters::default(),
        }
    }
}

/// A job's end is handled within this time: the middleware answers at once.
const SOON: Span = Span::from_us(100);

pub(super) struct AdaptiveControl {
    scheme: Scheme,
    period: Option<Span>,
    ended: Option<Span>,
}

impl AdaptiveControl {
    pub(super) fn new(adaptive: Adaptive) -> Self {
        Self {
            scheme: Scheme::new(adaptive.group, adaptive.parameters),
            period: None,
            ended: None,
        }
    }
}

impl Controls for AdaptiveControl {
    fn marked(&mut self, mark: &Mark) {
        match mark.said {
            Said::RealTimeStarted { period, .. } => {
                self.period = Some(period);
                self.ended = Some(mark.executed);
            }
            Said::JobEnded => {
                let before = self.ended.replace(mark.executed);
                if let Some(before) = before {
                    self.scheme.job(mark.executed - before);
                }
            }
            _ => {}
        }
    }

    fn patience(&self) -> Span {
        SOON
    }

    fn wanted(&self) -> Option<Reservation> {
        let period = self.period?;
        Reservation::implicit(self.scheme.budget()?.min(period), period).ok()
    }
}
