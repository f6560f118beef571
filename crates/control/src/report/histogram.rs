//! A histogram of times with a fixed relative error, cheap enough to record every job of hundreds
//! of threads.
//!
//! Logarithmic groups, each octave cut into 64 equal parts (the layout of HDR histograms), or into
//! another power of two: a value is told within 1/64 of itself, and recording one is a shift and an
//! increment. There are groups only from the shortest time recorded to the longest: those of one
//! thread are mostly alike.

use onbeat_model::{Quantiles, Span};

/// The distribution of some times, told within `1 / 2^PARTS_LOG2` of themselves.
#[derive(Clone, Debug, Default)]
pub struct TimeHistogram<const PARTS_LOG2: u32 = 6> {
    groups: Vec<u32>,
    first: usize,
    count: u64,
    max: Span,
}

impl<const PARTS_LOG2: u32> TimeHistogram<PARTS_LOG2> {
    const PARTS: u64 = 1 << PARTS_LOG2;

    pub fn record(&mut self, time: Span) {
        let group = Self::group_of(time.as_ns());
        if self.groups.is_empty() {
            self.first = group;
        }
        if group < self.first {
            let more = std::iter::repeat_n(0, self.first - group);
            self.groups.splice(..0, more);
            self.first = group;
        }
        let place = group - self.first;
        if place >= self.groups.len() {
            self.groups.resize(place + 1, 0);
        }
        if let Some(n) = self.groups.get_mut(place) {
            *n = n.saturating_add(1);
        }
        self.count += 1;
        self.max = self.max.max(time);
    }

    #[must_use]
    pub const fn count(&self) -> u64 {
        self.count
    }

    #[must_use]
    pub fn max(&self) -> Option<Span> {
        (self.count > 0).then_some(self.max)
    }

    /// The time that at least the fraction `p` stay within, at most one part too long; none if
    /// nothing was recorded.
    #[must_use]
    pub fn quantile(&self, p: f64) -> Option<Span> {
        let rank = ((p.clamp(0.0, 1.0) * self.count as f64).ceil() as u64).max(1);
        let mut seen = 0;
        for (place, &n) in self.groups.iter().enumerate() {
            seen += u64::from(n);
            if seen >= rank {
                return Some(Span::from_ns(Self::longest_in(self.first + place)).min(self.max));
            }
        }
        None
    }

    #[must_use]
    pub fn quantiles(&self) -> Option<Quantiles> {
        Some(Quantiles {
            p50_ns: self.quantile(0.50)?,
            p95_ns: self.quantile(0.95)?,
            p99_ns: self.quantile(0.99)?,
            max_ns: self.max()?,
        })
    }

    fn group_of(ns: u64) -> usize {
        if ns < Self::PARTS {
            return ns as usize;
        }
        let octave = ns.ilog2() - PARTS_LOG2;
        let part = (ns >> octave) - Self::PARTS;
        (Self::PARTS + u64::from(octave) * Self::PARTS + part) as usize
    }

    fn longest_in(group: usize) -> u64 {
        let group = group as u64;
        if group < Self::PARTS {
            return group;
        }
        let octave = (group - Self::PARTS) / Self::PARTS;
        let part = (group - Self::PARTS) % Self::PARTS;
        (((Self::PARTS + part + 1) as u128) << octave)
            .saturating_sub(1)
            .try_into()
            .unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_agree_with_the_sorted_list_within_a_sixty_fourth() {
        let mut times = <TimeHistogram>::default();
        let mut all = Vec::new();
        let mut x: u64 = 7;
        for _ in 0..5000 {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let span = Span::from_ns(x >> (20 + (x % 40)));
            all.push(span);
            times.record(span);
        }
        all.sort();
        for p in [0.0, 0.01, 0.5, 0.95, 0.99, 0.999, 1.0] {
            let rank = ((p * all.len() as f64).ceil() as usize).max(1);
            let exact = all[rank - 1];
            let told = times.quantile(p).unwrap();
            assert!(
                told >= exact && told <= exact + exact / 64,
                "{p}: {told} for {exact}"
            );
        }
        assert_eq!(times.max(), all.last().copied());
        assert_eq!(times.count(), 5000);
    }
}
