//! The default: the percentile of the last jobs' execution times, with a spread that is learnt.
//!
//! LFS++ (section 5.3) estimates the percentile p = (N-j)/N of the CPU time per sampling interval.
//! Here the samples are the jobs themselves, as its section 7.3 shows how much that is worth. A
//! window of N = 16 cannot tell what one job in a hundred needs. So beside it the amounts by which
//! jobs exceeded the median of the N before them are kept for the last 1024 jobs: what is asked for
//! is the paper's (1+x) times the percentile, or the median and as much more as keeps the share of
//! overruns at the one configured, whichever is more. (Counted from the median, because a long job
//! or two in the window move it little; counted from the percentile, they would be paid for twice.)

use std::collections::VecDeque;

use onbeat_model::{Demand, Instant, Job, Reservation, Span};

use super::catch_up::{CatchUp, overran};
use super::{Pace, Parameters, Predictor, generosity, percentile};

/// The quantile that notices a lasting rise: a quarter of the window is no chance.
const MOST: f64 = 0.75;
/// The first jobs of a period, with cold caches, leave no excess behind: two windows of them.
pub const START_UP_JOBS: u32 = 32;
/// The jobs of a new rate before the runtime of the former one is dropped: a quarter of the window,
/// from which on `generosity` adds a quarter at most.
const BRIDGE_JOBS: u32 = 4;

pub struct Percentile {
    parameters: Parameters,
    percentile: Option<Span>,
    median: Span,
    most: Span,
    jobs: usize,
    excess: Excess,
    planned: Option<Span>,
    start_up_left: u32,
    catch_up: CatchUp,
    pace: Pace,
    bridge: Option<Bridge>,
}

struct Bridge {
    runtime: Span,
    jobs_left: u32,
}

impl Percentile {
    #[must_use]
    pub fn new(parameters: Parameters) -> Self {
        Self {
            parameters,
            percentile: None,
            median: Span::ZERO,
            most: Span::ZERO,
            jobs: 0,
            excess: Excess::new(parameters.overruns),
            planned: None,
            start_up_left: START_UP_JOBS,
            catch_up: CatchUp::default(),
            pace: Pace::default(),
            bridge: None,
        }
    }

    #[must_use]
    pub fn build(parameters: Parameters) -> Box<dyn Predictor> {
        Box::new(Self::new(parameters))
    }

    fn plan(&self) -> Option<Span> {
        let percentile = self.percentile?;
        let spread = self.spread();
        let widest = percentile.scale(1.0 + self.parameters.widest_spread);
        let planned = if !self.excess.is_known() {
            percentile.scale(spread)
        } else {
            self.most.max(self.median.scale(spread))
        };
        let learnt = self.excess.beyond();
        let learnt = (self.median + learnt).min(widest);
        let generous = generosity(self.jobs, self.parameters.window);
        Some(planned.max(learnt).scale(generous))
    }

    /// The request, but for a raise to catch up.
    #[must_use]
    pub fn without_raise(&self) -> Option<Span> {
        let bridging = self.bridge.as_ref().map(|bridge| bridge.runtime);
        self.planned.max(bridging)
    }

    fn spread(&self) -> f64 {
        1.0 + self.parameters.spread.max(0.0)
    }

    /// By how much the job exceeded the median of those before it.
    fn learn(&mut self, job: &Job, planned: Span) {
        let needed = credible(job, planned.scale(self.spread()));
        let small = self.median.scale(self.parameters.spread.max(0.0));
        self.excess.record(needed - self.median, small);
    }
}

impl Predictor for Percentile {
    fn job(&mut self, job: &Job, demand: &Demand) {
        if self.start_up_left > 0 {
            self.start_up_left -= 1;
        } else if let Some(planned) = self.planned {
            self.learn(job, planned);
        }
        self.percentile = percentile(demand, &self.parameters);
        self.median = demand.quantile(0.5).unwrap_or_default();
        self.most = demand.quantile(MOST).unwrap_or_default();
        self.jobs = demand.len();
        self.pace = Pace::of(job);
        self.catch_up.job(job, self.planned);
        self.planned = self.plan();
        if let Some(bridge) = &mut self.bridge {
            bridge.jobs_left -= 1;
            if bridge.jobs_left == 0 {
                self.bridge = None;
            }
        }
    }

    fn exhausted(&mut self, at: Instant, held: Reservation) {
        self.catch_up.exhausted(at, held, &self.parameters);
    }

    /// The jobs of the new rate may be the old ones at another pace, or cut in another way: until
    /// the first few are known, the larger of the old runtime and the old bandwidth is asked for.
    fn rate_changed(&mut self, period: Span) {
        let stretch = self.pace.stretch(period);
        let runtime = self.without_raise();
        self.bridge = runtime.map(|runtime| Bridge {
            runtime: runtime.scale(stretch),
            jobs_left: BRIDGE_JOBS,
        });
        self.pace = Pace(Some(period));
        self.percentile = None;
        self.planned = None;
        self.jobs = 0;
        self.excess.clear();
        self.start_up_left = START_UP_JOBS;
        self.catch_up.clear();
    }

    fn speed_changed(&mut self, factor: f64) {
        let scaled = |span: Option<Span>| span.map(|span| span.scale(factor));
        self.percentile = scaled(self.percentile);
        self.planned = scaled(self.planned);
        self.median = self.median.scale(factor);
        self.most = self.most.scale(factor);
        self.excess.scale(factor);
        if let Some(bridge) = &mut self.bridge {
            bridge.runtime = bridge.runtime.scale(factor);
        }
        self.catch_up.scale(factor);
    }

    fn runtime(&self, period: Span) -> Option<Span> {
        self.catch_up.over(self.without_raise(), period)
    }
}

/// A job that ended late may have the next one's execution time mixed up with its own: it is
/// believed to have needed more than was planned, but only a step more.
fn credible(job: &Job, step: Span) -> Span {
    if overran(job) {
        job.executed.min(step)
    } else {
        job.executed
    }
}

/// Jobs after which the excesses replace a percentile: of 100, one may overrun
/// (`Parameters::overruns`).
const KNOWN: u64 = 100;
/// Jobs for which an excess is remembered: ten times `KNOWN`.
const WINDOW: u64 = 1024;

/// By how much jobs exceeded what is usual, for the last 1024 jobs: what one job in a hundred
/// needs. Only excesses beyond what is granted anyway are kept; the others only count.
#[derive(Clone, Debug, Default)]
struct Excess {
    permitted: f64,
    jobs: u64,
    /// The large excesses, each with the number of its job.
    large: VecDeque<(u64, Span)>,
    beyond: Span,
    scratch: Vec<Span>,
}

impl Excess {
    /// No job yet; of the jobs to come the share `permitted` may go beyond
    /// [`beyond`](Self::beyond).
    fn new(permitted: f64) -> Self {
        Self {
            permitted: permitted.clamp(0.0, 1.0),
            ..Self::default()
        }
    }

    /// One more job, which exceeded the usual by `excess`; up to `small` it need not be known.
    fn record(&mut self, excess: Span, small: Span) {
        let before = self.passed_over();
        self.jobs += 1;
        let is_over = |&&(job, _): &&(u64, Span)| job + WINDOW <= self.jobs;
        let expires = self.large.front().filter(is_over).is_some();
        if expires {
            self.large.pop_front();
        }
        if excess > small {
            self.large.push_back((self.jobs, excess));
        }
        // Most jobs change nothing.
        if expires || excess > small || self.passed_over() != before {
            self.look();
        }
    }

    /// The answer is the (k+1)-th largest excess.
    fn passed_over(&self) -> usize {
        let jobs = self.jobs.min(WINDOW);
        ((self.permitted * jobs as f64) as usize).max(1)
    }

    fn is_known(&self) -> bool {
        self.jobs >= KNOWN
    }

    /// The excess that at most the permitted share of the jobs went beyond; zero if it is a small
    /// one. The largest is never counted: one outlier is no distribution.
    const fn beyond(&self) -> Span {
        self.beyond
    }

    fn look(&mut self) {
        let rank = self.passed_over();
        self.scratch.clear();
        self.scratch
            .extend(self.large.iter().map(|(_, excess)| *excess));
        self.beyond = if rank < self.scratch.len() {
            *self.scratch.select_nth_unstable_by(rank, |a, b| b.cmp(a)).1
        } else {
            Span::ZERO
        };
    }

    fn scale(&mut self, factor: f64) {
        for (_, excess) in &mut self.large {
            *excess = excess.scale(factor);
        }
        self.look();
    }

    fn clear(&mut self) {
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
