//! The share of one CPU that a reservation takes: runtime over period.
//!
//! Kept in whole parts per billion, so that a sum over thousands of tasks is exact and the
//! supervisor's test (LFS++, eq. 1) cannot drift with the order of additions.

use std::fmt;
use std::ops::{Add, AddAssign, Sub};

use serde::{Deserialize, Serialize};

use crate::Span;

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
    fn a_share_is_runtime_over_period_rounded_up() {
        let third = Bandwidth::of(Span::from_ms(1), Span::from_ms(3));
        assert_eq!(third.0, 333_333_334);
        assert_eq!(third.to_string(), "33.3%");
        assert_eq!(third.runtime_in(Span::from_ms(3)), Span::from_ns(1_000_000));
        assert_eq!(Bandwidth::of(Span::from_ms(1), Span::ZERO), Bandwidth::ZERO);
    }
}
