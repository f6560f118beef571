//! A program whose demands repeat, as a film's do after each group of frames: each place of the
//! group has a budget of its own.
//!
//! AQuoSA's adaptive reservations had a predictor that was told the coding scheme (LFS++, section
//! 7.3). Here the length of the group is learnt: it is the distance at which jobs resemble each
//! other most. A job is expected to take the mean of the last ones at its place, times how much
//! more or less than expected the last few jobs took, because a scene is harder or easier as a
//! whole. As much more is asked for as keeps the share of overruns at the one configured.
//!
//! Where nothing repeats, and until that is known, this is the [`Percentile`].

use std::collections::VecDeque;

use onbeat_decide::predictor::{CatchUp, Excess, Parameters, Percentile, Predictor, credible};
use onbeat_model::{Demand, Instant, Job, Reservation, Span};

/// The longest group of jobs; groups of pictures are shorter.
const LONGEST: usize = 64;
/// The last jobs at its place by which a job is judged.
const PLACES: usize = 6;
/// The weight of the last job in how well a length fits: one and a half of the longest groups.
const WEIGHT: f64 = 1.0 / 96.0;
/// A length fits if its jobs differ by less than this share of what neighbours differ by: the best
/// of 64 lengths that mean nothing has 0.8.
const FITS: f64 = 0.7;
/// A shorter length that fits nearly as well is the group, and the longer one several of it.
const AS_WELL: f64 = 1.1;
/// The last jobs that say how hard the scene is.
const SCENE: usize = 4;

pub struct Pattern {
    parameters: Parameters,
    /// For which job after the last one told the runtime is. At least 1.
    ahead: usize,
    usual: Percentile,
    group: Repetition,
    excess: Excess,
    /// The expected demands of the coming jobs, up to the one that is planned for, which is the
    /// last; none without a group.
    expected: VecDeque<Option<Span>>,
    planned: Option<Span>,
    release: Option<Instant>,
    catch_up: CatchUp,
}

impl Pattern {
    /// For a thread whose jobs are told when they end: the runtime is that of the next one.
    #[must_use]
    pub fn of_told_jobs(parameters: Parameters) -> Box<dyn Predictor> {
        Box::new(Self::new(parameters, 1))
    }

    /// Jobs that are cut out of bursts are known to have ended when the next one's burst has.
    #[must_use]
    pub fn of_bursts(parameters: Parameters) -> Box<dyn Predictor> {
        Box::new(Self::new(parameters, 2))
    }

    fn new(parameters: Parameters, ahead: usize) -> Self {
        Self {
            parameters,
            ahead,
            usual: Percentile::new(parameters),
            group: Repetition::default(),
            excess: Excess::new(parameters.overruns),
            expected: VecDeque::new(),
            planned: None,
            release: None,
            catch_up: CatchUp::default(),
        }
    }

    fn least_spread(&self) -> f64 {
        self.parameters.spread.max(0.0)
    }

    /// The next job took `executed`: how much more than it was expected to, as a share of that, is
    /// kept as a share of a second.
    fn learn(&mut self, executed: Span) {
        if let Some(expected) = self.next() {
            let excess = (executed - expected).ratio(expected);
            let small = Span::from_secs_f64(self.least_spread());
            self.excess.record(Span::from_secs_f64(excess), small);
        }
        self.group.push(executed);
        if self.expected.len() == self.ahead {
            self.expected.pop_front();
        }
        self.expected.push_back(self.group.expected(self.ahead));
    }

    fn next(&self) -> Option<Span> {
        let is_known = self.expected.len() == self.ahead;
        self.expected
            .front()
            .copied()
            .flatten()
            .filter(|_| is_known)
    }

    fn plan(&self) -> Option<Span> {
        if !self.excess.is_known() {
            return None;
        }
        let expected = (*self.expected.back()?)?;
        let widest = self.parameters.widest_spread.max(self.least_spread());
        let learnt = self.excess.beyond().as_secs_f64();
        Some(expected.scale(1.0 + learnt.clamp(self.least_spread(), widest)))
    }

    fn without_raise(&self) -> Option<Span> {
        self.planned.or_else(|| self.usual.without_raise())
    }
}

impl Predictor for Pattern {
    fn job(&mut self, job: &Job, demand: &Demand) {
        self.catch_up.job(job, self.without_raise());
        self.usual.job(job, demand);
        // Beats without a job have a place, too: a late job may have done their work.
        let period = job.deadline.since(job.release);
        if let Some(former) = self.release.replace(job.release) {
            let beats = job.release.since(former).ratio(period).round() as usize;
            for _ in 1..beats.min(LONGEST) {
                if let Some(expected) = self.next() {
                    self.learn(expected);
                }
            }
        }
        let step = 1.0 + self.parameters.widest_spread;
        let most = self.next().map(|expected| expected.scale(step));
        let executed = most.map_or(job.executed, |most| credible(job, most));
        self.learn(executed);
        self.planned = self.plan();
    }

    fn exhausted(&mut self, at: Instant, held: Reservation) {
        self.catch_up.exhausted(at, held, &self.parameters);
    }

    fn rate_changed(&mut self, period: Span) {
        self.usual.rate_changed(period);
        self.group = Repetition::default();
        self.excess.clear();
        self.expected.clear();
        self.planned = None;
        self.release = None;
        self.catch_up.clear();
    }

    fn speed_changed(&mut self, factor: f64) {
        self.usual.speed_changed(factor);
        self.group.scale(factor);
        let scaled = |span: Option<Span>| span.map(|span| span.scale(factor));
        for expected in &mut self.expected {
            *expected = scaled(*expected);
        }
        self.planned = scaled(self.planned);
        self.catch_up.scale(factor);
    }

    fn runtime(&self, period: Span) -> Option<Span> {
        self.catch_up.over(self.without_raise(), period)
    }
}

struct Repetition {
    demands: VecDeque<Span>,
    /// For each length, how much jobs differ from the mean of the two before at their place, as a
    /// share; none as long as there are no two.
    differences: [Option<f64>; LONGEST],
    length: Option<usize>,
    /// The demands of the last jobs, over the mean at their place.
    scene: VecDeque<f64>,
}

impl Default for Repetition {
    fn default() -> Self {
        Self {
            demands: VecDeque::with_capacity(LONGEST * PLACES + 1),
            differences: [None; LONGEST],
            length: None,
            scene: VecDeque::with_capacity(SCENE + 1),
        }
    }
}

impl Repetition {
    fn push(&mut self, demand: Span) {
        if let Some(mean) = self.at_place(1)
            && mean > Span::ZERO
        {
            self.scene.push_front(demand.ratio(mean));
            self.scene.truncate(SCENE);
        }
        for (length, difference) in (1..).zip(&mut self.differences) {
            let at = |places: usize| self.demands.get(length * places - 1);
            let (Some(&last), Some(&before)) = (at(1), at(2)) else {
                break;
            };
            let mean = (last + before) / 2;
            let larger = mean.max(demand).max(Span::from_ns(1));
            let differs = mean.abs_diff(demand).ratio(larger);
            let known = difference.get_or_insert(differs);
            *known += WEIGHT * (differs - *known);
        }
        self.demands.push_front(demand);
        self.demands.truncate(LONGEST * PLACES);
        let length = self.fitting();
        if length != self.length {
            self.scene.clear();
        }
        self.length = length;
    }

    /// The length at which jobs resemble each other most, if that is more than neighbours do.
    fn fitting(&self) -> Option<usize> {
        let known = self.demands.len() / 3;
        let lengths = || {
            let lengths = (1..).zip(self.differences.iter().take(known));
            lengths.filter_map(|(length, difference)| Some((length, (*difference)?)))
        };
        let neighbours = lengths().next()?.1;
        let best = lengths().map(|(_, differs)| differs).reduce(f64::min)?;
        let (length, _) = lengths().find(|&(_, differs)| differs <= best * AS_WELL)?;
        (length > 1 && best < neighbours * FITS).then_some(length)
    }

    /// The mean of the last jobs at the place of the job that is `ahead` after the last.
    fn at_place(&self, ahead: usize) -> Option<Span> {
        let length = self.length?;
        let first = (length * ahead.div_ceil(length)).checked_sub(ahead)?;
        let jobs = self.demands.iter().skip(first).step_by(length).take(PLACES);
        let (sum, count) = jobs.fold((Span::ZERO, 0), |(sum, count), &job| (sum + job, count + 1));
        (count > 0).then(|| sum / count)
    }

    /// The expected demand of the job `ahead` after the last; none without a group.
    fn expected(&self, ahead: usize) -> Option<Span> {
        let mut scene: Vec<f64> = self.scene.iter().copied().collect();
        scene.sort_unstable_by(f64::total_cmp);
        let level = scene.get(scene.len() / 2).copied().unwrap_or(1.0);
        Some(self.at_place(ahead)?.scale(level))
    }

    fn scale(&mut self, factor: f64) {
        for demand in &mut self.demands {
            *demand = demand.scale(factor);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GROUP: [u64; 6] = [20, 10, 10, 14, 10, 10];

    fn after(jobs: usize, demand: impl Fn(usize) -> Span) -> Repetition {
        let mut group = Repetition::default();
        (0..jobs).for_each(|n| group.push(demand(n)));
        group
    }

    #[test]
    fn the_length_of_a_group_is_learnt_and_each_place_has_its_mean() {
        let group = after(60, |n| Span::from_ms(GROUP[n % 6]));
        assert_eq!(group.length, Some(6));
        for ahead in 1..=12 {
            let ms = GROUP[(60 + ahead - 1) % 6];
            assert_eq!(group.expected(ahead), Some(Span::from_ms(ms)), "{ahead}");
        }
    }

    #[test]
    fn jobs_that_do_not_repeat_have_no_group() {
        let mut state = 1_u64;
        let mut group = Repetition::default();
        for n in 0..4000 {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            group.push(Span::from_us(8000 + (state >> 33) % 4000));
            assert!(
                n < 300 || group.length.is_none(),
                "job {n}: {:?}",
                group.length
            );
        }
        let slow = after(2000, |n| Span::from_us(10_000 + (n as u64 % 300) * 10));
        assert_eq!(slow.length, None, "a slow change is no group");
    }
}
