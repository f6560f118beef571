//! By how much jobs exceeded what is usual, for the last 1024 jobs: what one job in a hundred
//! needs.
//!
//! Only excesses beyond what is granted anyway are kept; the others only count. An excess that
//! enough later ones reach can never be the answer any more, and is forgotten: some sixty are left,
//! so that a thread's account stays small enough to be at hand when its next job ends. They are
//! kept in order of size as well, so that the question, which is asked after every job, is one
//! look.

use std::collections::VecDeque;

use onbeat_model::Span;

/// Jobs after which the excesses replace a percentile: of 100, one may overrun
/// (`Parameters::overruns`).
pub(super) const KNOWN: u64 = 100;
/// Jobs for which an excess is remembered: ten times `KNOWN`.
const WINDOW: u64 = 1024;
/// Of the ranks asked for: to forget more gains nothing.
const KEEP_RANKS: usize = 8;

#[derive(Clone, Debug, Default)]
pub(super) struct Excess {
    permitted: f64,
    jobs: u64,
    oldest: u64,
    /// The answer of [`beyond`](Self::beyond) while these and the rank looked at stay the same.
    answer: Span,
    /// The large excesses, each with the number of its job.
    large: VecDeque<(u64, Span)>,
    sorted: Vec<Span>,
    /// The number at which it is time to forget those that no longer matter.
    most: usize,
}

impl Excess {
    /// No job yet; of the jobs to come the share `permitted` may go beyond
    /// [`beyond`](Self::beyond).
    pub(super) fn new(permitted: f64) -> Self {
        let mut new = Self {
            permitted: permitted.clamp(0.0, 1.0),
            ..Self::default()
        };
        new.most = new.least_kept();
        new
    }

    /// One more job, which exceeded the usual by `excess`; up to `small` it need not be known.
    pub(super) fn record(&mut self, excess: Span, small: Span) {
        let before = self.len();
        self.jobs += 1;
        let expires = !self.large.is_empty() && self.oldest + WINDOW <= self.jobs;
        let same_rank = self.passed_over(self.len()) == self.passed_over(before);
        // Most jobs end here, with a look at nothing but these few numbers.
        if excess <= small && !expires && same_rank {
            return;
        }
        if excess > small {
            self.large.push_back((self.jobs, excess));
            self.sorted.insert(self.place(excess), excess);
        }
        if expires && let Some((_, oldest)) = self.large.pop_front() {
            self.sorted.remove(self.place(oldest));
        }
        if self.large.len() > self.most {
            self.forget_unneeded();
        }
        self.oldest = self.large.front().map_or(0, |&(job, _)| job);
        self.answer = self.look();
    }

    fn place(&self, excess: Span) -> usize {
        self.sorted.partition_point(|&other| other < excess)
    }

    /// The answer is the (k+1)-th largest excess.
    fn passed_over(&self, jobs: u64) -> usize {
        ((self.permitted * jobs as f64) as usize).max(1)
    }

    fn least_kept(&self) -> usize {
        KEEP_RANKS * (self.passed_over(WINDOW) + 1)
    }

    /// An excess that as many later ones reach as are looked at of a full window will be the answer
    /// in none.
    fn forget_unneeded(&mut self) {
        let ranks = self.passed_over(WINDOW) + 1;
        let mut later_largest: Vec<Span> = Vec::with_capacity(ranks + 1);
        let mut needed = VecDeque::with_capacity(self.large.len() / 2);
        for &(job, excess) in self.large.iter().rev() {
            let reached_by = later_largest.partition_point(|&later| later >= excess);
            if reached_by >= ranks {
                continue;
            }
            later_largest.insert(reached_by, excess);
            later_largest.truncate(ranks);
            needed.push_front((job, excess));
        }
        self.large = needed;
        self.sorted.clear();
        self.sorted
            .extend(self.large.iter().map(|&(_, excess)| excess));
        self.sorted.sort_unstable();
        self.most = self.least_kept().max(2 * self.large.len());
    }

    pub(super) fn len(&self) -> u64 {
        self.jobs.min(WINDOW)
    }

    /// The excess that at most the permitted share of the jobs went beyond; zero if it is a small
    /// one. The largest is never counted: one outlier is no distribution.
    pub(super) const fn beyond(&self) -> Span {
        self.answer
    }

    fn look(&self) -> Span {
        let passed_over = self.passed_over(self.len());
        let rank = self.sorted.len().checked_sub(passed_over + 1);
        rank.and_then(|rank| self.sorted.get(rank).copied())
            .unwrap_or_default()
    }

    /// Every job would have taken `factor` times as long.
    pub(super) fn scale(&mut self, factor: f64) {
        let large = self.large.iter_mut().map(|(_, excess)| excess);
        for excess in large.chain(&mut self.sorted) {
            *excess = excess.scale(factor);
        }
        self.answer = self.look();
    }

    pub(super) fn clear(&mut self) {
        *self = Self::new(self.permitted);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The answer after each of 3000 jobs, and that of the whole window sorted anew.
    fn answers(permitted: f64, sizes: impl Fn(u64, u64) -> u64) -> (Vec<Span>, Vec<Span>) {
        let small = Span::from_ns(700);
        let mut excess = Excess::new(permitted);
        let (mut all, mut told, mut slow) = (Vec::new(), Vec::new(), Vec::new());
        let mut x: u64 = 3;
        for job in 0..3000 {
            x = x
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let size = Span::from_ns(sizes(job, (x >> 33) % 1000));
            excess.record(size, small);
            all.push(size);
            let mut window = all[all.len().saturating_sub(1024)..].to_vec();
            window.sort();
            let passed_over = ((permitted * window.len() as f64) as usize).max(1);
            let answer = window
                .len()
                .checked_sub(passed_over + 1)
                .map_or(Span::ZERO, |rank| window[rank]);
            slow.push(if answer > small { answer } else { Span::ZERO });
            told.push(excess.beyond());
        }
        (told, slow)
    }

    #[test]
    fn the_answer_is_that_of_a_window_sorted_anew_wherever_it_is_not_small() {
        for permitted in [0.0, 0.01, 0.05, 0.5] {
            let (told, slow) = answers(permitted, |_, random| random);
            assert_eq!(told, slow);
            let (told, slow) = answers(permitted, |job, random| random + 4000 - job);
            assert_eq!(
                told, slow,
                "ever smaller ones, of which none can be forgotten"
            );
        }
    }
}
