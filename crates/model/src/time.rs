//! Points in time and lengths of time, so that the two are never mixed up.
//!
//! Both count nanoseconds in 64 bits, as the kernel does. An [`Instant`] is a reading of
//! CLOCK_MONOTONIC (or of a recording's own clock); a [`Span`] is a length. Arithmetic saturates:
//! a damaged recording may hold any number, and a pure crate must not panic on one.

use std::fmt;
use std::ops::{Add, AddAssign, Div, Mul, Sub};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A point in time, in nanoseconds of CLOCK_MONOTONIC or of a recording's clock.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Instant(u64);

#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Span(u64);

impl Instant {
    pub const ZERO: Self = Self(0);

    #[must_use]
    pub const fn from_ns(ns: u64) -> Self {
        Self(ns)
    }

    #[must_use]
    pub const fn as_ns(self) -> u64 {
        self.0
    }

    /// The time from `earlier` to here; zero if `earlier` is later.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }

    /// The signed time from `other` to here, in nanoseconds.
    #[must_use]
    pub fn offset_from(self, other: Self) -> i64 {
        let offset = i128::from(self.0) - i128::from(other.0);
        offset.clamp(i64::MIN.into(), i64::MAX.into()) as i64
    }
}

impl Span {
    pub const ZERO: Self = Self(0);
    pub const MAX: Self = Self(u64::MAX);

    #[must_use]
    pub const fn from_ns(ns: u64) -> Self {
        Self(ns)
    }

    #[must_use]
    pub const fn from_us(us: u64) -> Self {
        Self(us.saturating_mul(1_000))
    }

    #[must_use]
    pub const fn from_ms(ms: u64) -> Self {
        Self(ms.saturating_mul(1_000_000))
    }

    #[must_use]
    pub const fn from_secs(s: u64) -> Self {
        Self(s.saturating_mul(1_000_000_000))
    }

    /// `s` seconds, rounded to the nanosecond; negative and not-a-number become zero.
    #[must_use]
    pub fn from_secs_f64(s: f64) -> Self {
        Self((s * 1e9).round() as u64)
    }

    #[must_use]
    pub const fn as_ns(self) -> u64 {
        self.0
    }

    #[must_use]
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    #[must_use]
    pub fn as_ms_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }

    #[must_use]
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// This length doubled `times` times, at most `longest`: the pause after `times` failures.
    #[must_use]
    pub fn doubled(self, times: u32, longest: Self) -> Self {
        let factor = if times < 64 { 1 << times } else { u64::MAX };
        Self(self.0.saturating_mul(factor)).min(longest)
    }

    /// This length times `factor`, rounded to the nanosecond; a negative factor gives zero.
    #[must_use]
    pub fn scale(self, factor: f64) -> Self {
        Self((self.0 as f64 * factor).round() as u64)
    }

    /// How many times `other` fits into this length, as a fraction; zero if `other` is zero.
    #[must_use]
    pub fn ratio(self, other: Self) -> f64 {
        if other.0 == 0 {
            0.0
        } else {
            self.0 as f64 / other.0 as f64
        }
    }

    #[must_use]
    pub const fn abs_diff(self, other: Self) -> Self {
        Self(self.0.abs_diff(other.0))
    }
}

impl Add<Span> for Instant {
    type Output = Self;
    fn add(self, span: Span) -> Self {
        Self(self.0.saturating_add(span.0))
    }
}

impl Sub<Span> for Instant {
    type Output = Self;
    fn sub(self, span: Span) -> Self {
        Self(self.0.saturating_sub(span.0))
    }
}

impl Add for Span {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Span {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for Span {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Mul<u64> for Span {
    type Output = Self;
    fn mul(self, factor: u64) -> Self {
        Self(self.0.saturating_mul(factor))
    }
}

impl Div<u64> for Span {
    type Output = Self;
    /// Rounds down; division by zero gives zero, as everything here is total.
    fn div(self, divisor: u64) -> Self {
        Self(self.0.checked_div(divisor).unwrap_or(0))
    }
}

impl std::iter::Sum for Span {
    fn sum<I: Iterator<Item = Self>>(spans: I) -> Self {
        spans.fold(Self::ZERO, Add::add)
    }
}

impl fmt::Display for Span {
    /// Four significant digits in the unit that suits: `33.37 ms`, `3.505 ms`, `250 us`, `1.2 s`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, scale) = match self.0 {
            0..1_000 => ("ns", 1.0),
            1_000..1_000_000 => ("us", 1e3),
            1_000_000..1_000_000_000 => ("ms", 1e6),
            _ => ("s", 1e9),
        };
        let value = self.0 as f64 / scale;
        let decimals = if value >= 1000.0 {
            0
        } else if value >= 100.0 {
            1
        } else if value >= 10.0 {
            2
        } else {
            3
        };
        let mut text = format!("{value:.decimals$}");
        if text.contains('.') {
            text.truncate(text.trim_end_matches('0').trim_end_matches('.').len());
        }
        f.pad(&format!("{text} {unit}"))
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{text}' is no length of time: write a number and its unit, as in 500us, 33.3ms or 1s")]
pub struct ParseSpanError {
    text: String,
}

impl FromStr for Span {
    type Err = ParseSpanError;

    /// Reads `500us`, `33.3ms`, `1s`, `20 ms`, `1024ns`. A bare number is refused: its unit would
    /// be a guess.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = || ParseSpanError {
            text: text.to_owned(),
        };
        let trimmed = text.trim();
        let split = trimmed
            .find(|c: char| !(c.is_ascii_digit() || c == '.'))
            .ok_or_else(error)?;
        let (number, unit) = trimmed.split_at(split);
        let scale = match unit.trim_start() {
            "ns" => 1.0,
            "us" | "µs" => 1e3,
            "ms" => 1e6,
            "s" => 1e9,
            _ => return Err(error()),
        };
        let ns = number.parse::<f64>().map_err(|_| error())? * scale;
        if ns.is_finite() && ns < u64::MAX as f64 {
            Ok(Self(ns.round() as u64))
        } else {
            Err(error())
        }
    }
}

/// Quantiles; of a simulation to within 1%, but the longest is exact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct Quantiles {
    pub p50_ns: Span,
    pub p95_ns: Span,
    pub p99_ns: Span,
    pub max_ns: Span,
}

impl Quantiles {
    /// The percentile of these, exactly (nearest rank); none if there are none.
    #[must_use]
    pub fn of(mut spans: Vec<Span>) -> Option<Self> {
        spans.sort_unstable();
        let max_ns = *spans.last()?;
        let at = |quantile: f64| {
            let rank = (quantile * spans.len() as f64).ceil() as usize;
            spans.get(rank.saturating_sub(1)).copied().unwrap_or(max_ns)
        };
        Some(Self {
            p50_ns: at(0.50),
            p95_ns: at(0.95),
            p99_ns: at(0.99),
            max_ns,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_reads_back_what_it_shows() {
        for (text, ns) in [
            ("33.37 ms", 33_370_000),
            ("3.505 ms", 3_505_000),
            ("250 us", 250_000),
            ("1.2 s", 1_200_000_000),
            ("1024ns", 1024),
        ] {
            assert_eq!(text.parse::<Span>().unwrap().as_ns(), ns, "{text}");
        }
        assert_eq!(Span::from_us(3505).to_string(), "3.505 ms");
        assert_eq!(Span::from_ns(33_366_700).to_string(), "33.37 ms");
        assert_eq!(Span::ZERO.to_string(), "0 ns");
    }

    #[test]
    fn a_number_without_a_unit_is_refused_with_advice() {
        for text in ["", "20", "ms", "1.2.3ms", "-5ms", "5 parsecs", "1e9s"] {
            let error = text.parse::<Span>().unwrap_err().to_string();
            assert!(error.contains("as in 500us"), "{error}");
        }
    }

    #[test]
    fn arithmetic_saturates_at_both_ends() {
        assert_eq!(Span::MAX + Span::from_ns(1), Span::MAX);
        assert_eq!(Span::from_ns(1) - Span::from_ns(2), Span::ZERO);
        assert_eq!(Instant::from_ns(5).since(Instant::from_ns(7)), Span::ZERO);
        assert_eq!(Instant::from_ns(5).offset_from(Instant::from_ns(7)), -2);
        assert_eq!(
            Instant::ZERO.offset_from(Instant::from_ns(u64::MAX)),
            i64::MIN
        );
        assert_eq!(Span::from_ns(7) / 0, Span::ZERO);
        assert_eq!(Span::from_secs_f64(f64::NAN), Span::ZERO);
    }
}
