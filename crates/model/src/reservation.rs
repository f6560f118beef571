//! The promise to a task: runtime in every period, before the deadline.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{Bandwidth, Span};

/// A CPU reservation: `runtime` of CPU time in every `period`, before `deadline` in each.
///
/// Always 0 < runtime <= deadline <= period. The actuator knows what a kernel adds to that
/// (granularity, shortest and longest period).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "RawReservation")]
pub struct Reservation {
    #[serde(rename = "runtime_ns")]
    runtime: Span,
    #[serde(rename = "deadline_ns")]
    deadline: Span,
    #[serde(rename = "period_ns")]
    period: Span,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReservationError {
    #[error("a reservation needs a runtime greater than zero")]
    NoRuntime,
    #[error("a runtime of {runtime} does not fit before a deadline of {deadline}")]
    RuntimePastDeadline { runtime: Span, deadline: Span },
    #[error("a deadline of {deadline} is longer than the period of {period}")]
    DeadlinePastPeriod { deadline: Span, period: Span },
}

impl Reservation {
    /// `runtime` in every `period`, before `deadline`.
    /// Fails unless 0 < runtime <= deadline <= period.
    pub fn new(runtime: Span, deadline: Span, period: Span) -> Result<Self, ReservationError> {
        if runtime.is_zero() {
            Err(ReservationError::NoRuntime)
        } else if runtime > deadline {
            Err(ReservationError::RuntimePastDeadline { runtime, deadline })
        } else if deadline > period {
            Err(ReservationError::DeadlinePastPeriod { deadline, period })
        } else {
            Ok(Self {
                runtime,
                deadline,
                period,
            })
        }
    }

    /// `runtime` in every `period`, the deadline at the period's end.
    /// Fails unless 0 < runtime <= period.
    pub fn implicit(runtime: Span, period: Span) -> Result<Self, ReservationError> {
        Self::new(runtime, period, period)
    }

    #[must_use]
    pub const fn runtime(&self) -> Span {
        self.runtime
    }

    #[must_use]
    pub const fn deadline(&self) -> Span {
        self.deadline
    }

    #[must_use]
    pub const fn period(&self) -> Span {
        self.period
    }

    #[must_use]
    pub fn bandwidth(&self) -> Bandwidth {
        Bandwidth::of(self.runtime, self.period)
    }
}

impl fmt::Display for Reservation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.deadline == self.period {
            write!(f, "{} every {}", self.runtime, self.period)
        } else {
            write!(
                f,
                "{} within {} every {}",
                self.runtime, self.deadline, self.period
            )
        }
    }
}

#[derive(Deserialize)]
struct RawReservation {
    runtime_ns: Span,
    deadline_ns: Span,
    period_ns: Span,
}

impl TryFrom<RawReservation> for Reservation {
    type Error = ReservationError;
    fn try_from(raw: RawReservation) -> Result<Self, Self::Error> {
        Self::new(raw.runtime_ns, raw.deadline_ns, raw.period_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_runtime_within_deadline_within_period_is_a_reservation() {
        let ms = Span::from_ms;
        assert!(Reservation::new(ms(5), ms(10), ms(20)).is_ok());
        assert_eq!(
            Reservation::implicit(ms(0), ms(20)),
            Err(ReservationError::NoRuntime)
        );
        let late = Reservation::implicit(ms(21), ms(20)).unwrap_err();
        assert_eq!(
            late.to_string(),
            "a runtime of 21 ms does not fit before a deadline of 20 ms"
        );
        assert!(Reservation::new(ms(5), ms(30), ms(20)).is_err());
    }

    #[test]
    fn json_has_units_and_is_checked_when_read() {
        let reservation = Reservation::implicit(Span::from_ns(5), Span::from_ns(20)).unwrap();
        let json = serde_json::to_string(&reservation).unwrap();
        assert_eq!(json, r#"{"runtime_ns":5,"deadline_ns":20,"period_ns":20}"#);
        assert_eq!(
            serde_json::from_str::<Reservation>(&json).unwrap(),
            reservation
        );
        let bad = r#"{"runtime_ns":50,"deadline_ns":20,"period_ns":20}"#;
        assert!(serde_json::from_str::<Reservation>(bad).is_err());
    }
}
