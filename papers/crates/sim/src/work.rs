//! How much a job has to compute, whatever the speed of the CPU that computes it.

use std::ops::{Add, AddAssign, Sub};

use onbeat_model::Span;

/// An amount of computation: the time it takes at the machine's full speed, in nanoseconds.
///
/// The field counts cycles; cycles at the full frequency and time at the full speed are the same
/// but for a factor, and the latter is what recordings tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Work(u64);

impl Work {
    pub const ZERO: Self = Self(0);
    pub const ENDLESS: Self = Self(u64::MAX);

    pub const fn at_full_speed(span: Span) -> Self {
        Self(span.as_ns())
    }

    pub const fn as_span(self) -> Span {
        Span::from_ns(self.0)
    }

    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }
}

impl Add for Work {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Work {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for Work {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}
