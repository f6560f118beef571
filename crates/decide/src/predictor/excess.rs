//! By how much jobs exceeded what is usual, for the last 1024 jobs: what one job in a hundred needs.
//!
//! Only excesses beyond what is granted anyway are kept, which are few; the others only count. They
//! are kept in order of size as well, so that a job costs a search among a few and the question, which is
//! asked after every job, one look.

use std::collections::VecDeque;

use onbeat_model::Span;

/// For how many jobs an excess is remembered.
const WINDOW: u64 = 1024;

/// The large excesses of the last jobs.
#[derive(Clone, Debug, Default)]
pub(super) struct Excess {
    jobs: u64,
    large: VecDeque<(u64, Span)>,
    /// The same, the largest last.
    sorted: Vec<Span>,
}

impl Excess {
    /// One more job, which exceeded the usual by `excess`; up to `small` it need not be known.
    pub(super) fn record(&mut self, excess: Span, small: Span) {
        self.jobs += 1;
        if excess > small {
            self.large.push_back((self.jobs, excess));
            self.sorted.insert(self.place(excess), excess);
        }
        let oldest = self.large.front().copied();
        if let Some((_, oldest)) = oldest.filter(|(job, _)| job + WINDOW <= self.jobs) {
            self.large.pop_front();
            self.sorted.remove(self.place(oldest));
        }
    }

    fn place(&self, excess: Span) -> usize {
        self.sorted.partition_point(|&other| other < excess)
    }

    /// How many jobs are remembered.
    pub(super) fn len(&self) -> u64 {
        self.jobs.min(WINDOW)
    }

    /// The excess that at most the share `permitted` of the jobs went beyond; zero if it is a small
    /// one. The largest is never counted: one outlier is no distribution.
    pub(super) fn beyond(&self, permitted: f64) -> Span {
        let permitted = (permitted.clamp(0.0, 1.0) * self.len() as f64) as usize;
        let passed_over = permitted.max(1);
        let rank = self.sorted.len().checked_sub(passed_over + 1);
        rank.map_or(Span::ZERO, |rank| self.sorted[rank])
    }

    /// Every job would have taken `factor` times as long.
    pub(super) fn scale(&mut self, factor: f64) {
        let large = self.large.iter_mut().map(|(_, excess)| excess);
        for excess in large.chain(&mut self.sorted) {
            *excess = excess.scale(factor);
        }
    }

    /// Forgets every job.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_is_that_of_a_window_sorted_anew_wherever_it_is_not_small() {
        let small = Span::from_ns(700);
        let mut excess = Excess::default();
        let mut all = Vec::new();
        let mut x: u64 = 3;
        for _ in 0..3000 {
            x = x
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let size = Span::from_ns((x >> 33) % 1000);
            excess.record(size, small);
            all.push(size);
            let mut window = all[all.len().saturating_sub(1024)..].to_vec();
            window.sort();
            for permitted in [0.0, 0.01, 0.05, 0.5] {
                let passed_over = ((permitted * window.len() as f64) as usize).max(1);
                let slow = window
                    .len()
                    .checked_sub(passed_over + 1)
                    .map_or(Span::ZERO, |rank| window[rank]);
                let expected = if slow > small { slow } else { Span::ZERO };
                assert_eq!(excess.beyond(permitted), expected);
            }
        }
    }
}
