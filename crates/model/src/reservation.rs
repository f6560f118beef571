//! The promise to a task: runtime in every period, before the deadline; and its share of a CPU, in
//! whole parts per billion, so that a sum over thousands of tasks is exact, in any order.

use std::fmt;
use std::ops::{Add, AddAssign, Sub};

use serde::{Deserialize, Serialize};

use crate::Span;

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

const ONE_CPU: u64 = 1_000_000_000;

/// A share of CPU time: 1 is one CPU, more than 1 several.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(from = "f64", into = "f64")]
pub struct Bandwidth(u64);

impl Bandwidth {
    pub const ZERO: Self = Self(0);
    pub const ONE: Self = Self(ONE_CPU);

    /// `runtime` in every `period`, rounded up; nothing if the period is zero.
    #[must_use]
    pub fn of(runtime: Span, period: Span) -> Self {
        if period.is_zero() {
            return Self::ZERO;
        }
        let parts = (u128::from(runtime.as_ns()) * u128::from(ONE_CPU))
            .div_ceil(u128::from(period.as_ns()));
        Self(u64::try_from(parts).unwrap_or(u64::MAX))
    }

    /// A share given as a fraction of one CPU; negative and not-a-number become zero.
    #[must_use]
    pub fn from_cpus(cpus: f64) -> Self {
        Self((cpus * ONE_CPU as f64).round() as u64)
    }

    #[must_use]
    pub fn as_cpus(self) -> f64 {
        self.0 as f64 / ONE_CPU as f64
    }

    #[must_use]
    pub fn runtime_in(self, period: Span) -> Span {
        let ns = u128::from(self.0) * u128::from(period.as_ns()) / u128::from(ONE_CPU);
        Span::from_ns(u64::try_from(ns).unwrap_or(u64::MAX))
    }
}

impl From<f64> for Bandwidth {
    fn from(cpus: f64) -> Self {
        Self::from_cpus(cpus)
    }
}

impl From<Bandwidth> for f64 {
    fn from(bandwidth: Bandwidth) -> Self {
        bandwidth.as_cpus()
    }
}

impl Add for Bandwidth {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Bandwidth {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for Bandwidth {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl std::iter::Sum for Bandwidth {
    fn sum<I: Iterator<Item = Self>>(shares: I) -> Self {
        shares.fold(Self::ZERO, Add::add)
    }
}

impl fmt::Display for Bandwidth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{:.1}%", self.as_cpus() * 100.0))
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

#[cfg(test)]
mod bandwidth_tests {
    use super::*;

    #[test]
    fn a_share_is_runtime_over_period_rounded_up() {
        let third = Bandwidth::of(Span::from_ms(1), Span::from_ms(3));
        assert_eq!(third.0, 333_333_334);
        assert_eq!(third.to_string(), "33.3%");
        assert_eq!(third.runtime_in(Span::from_ms(3)), Span::from_ns(1_000_000));
        assert_eq!(Bandwidth::of(Span::from_ms(1), Span::ZERO), Bandwidth::ZERO);
    }
}
