//! Whether a period that was found is that of a clock, or that of steps or sleeps of one size.
//!
//! The search finds the period that many wakeups have in common. A thread that sleeps for much the
//! same time again and again has one as well, for a while. The alternative is therefore a renewal
//! process: a thread whose every step is drawn anew, from whatever distribution. A period is told
//! if it has at least one of these proofs:
//!
//! - **A clock.** The phases of the wakeups are evidence for a grid (`fold`), also after the number
//!   of grids that could have been found is paid for; lateness does not add up, as that of a
//!   renewal process does, which is a random walk; and the phases tell the next wakeup at least as
//!   well as the end of the job before it does (below).
//! - **Steps of one size.** A timer that starts anew after each job keeps to no clock, and yet the
//!   next release is known. Surely more than half of the steps are very much alike, or nearly all
//!   are alike. If the thread serves several timers, only some are. If a job has several wakeups,
//!   a step is from one of them to the same one of the next job.
//! - **Sleeps of one size**, half and nearly all, between jobs that vary: all of a job together.
//! - **Polls in time.** A thread that polls for its next job begins each at the first poll after it
//!   was due.
//!
//! The machine has rhythms, too. Beside hogs a thread often gets its turn at a tick of the kernel
//! only, and then what follows its job comes soon after a tick: a write to the disk ends on a grid
//! of 4 ms. So the renewal process is one of *sleeps*: each wakeup comes a sleep, drawn anew, after
//! the end of the job before, whenever the machine let that end. The ends are taken as they were,
//! with the ticks in them. Then the sleeps are evidence for that process, in the same unit as the
//! phases are for a clock: the Bayes factor against sleeps whose remainder after whole periods is
//! anywhere (`fold`). A clock's sleeps make up for the length of its jobs, and tell less.
//!
//! A thread that waits for another one, which gets its turn at the ticks, is woken just after
//! these; and timeouts of a few lengths end at one. A period of one tick has no proof where most
//! releases are soon after a tick, and either by another thread or at too few of the ticks; nor has
//! one of several ticks where the releases are at each of these.

use onbeat_model::{Instant, Span};

use super::compact::Compact;
use super::false_alarm::divergence;
use super::fit::{self, FittedLine};
use super::fold::{Fold, MET};
use super::{ALIKE, COARSEST, EXACT_NS, NEARLY_ALL};

/// The odds that a period is right, before its phases are looked at. With 3.1 as many answers of
/// the development part are right as their confidence says in the mean, and with 2.5 to 3.8 if a
/// program is left out. The many answers for few programs are the easy ones, hence less
/// (experiments/period-accuracy). Raised: wrong answers are said to be sure.
const PRIOR_ODDS: f64 = 2.0;
/// The von Neumann ratio above which lateness does not add up: 2 if each beat is late on its own, 1
/// where two normal models, of the lateness and of its steps, are as likely.
pub(super) const HELD: f64 = 1.2;
/// The deviations within which half of normal values lie, and nine of ten.
const OF_HALF: f64 = 0.674_490;
const OF_NINE_IN_TEN: f64 = 1.644_854;

/// Half of normal steps differ by this share at most, if `NEARLY_ALL`, nine of ten, are `ALIKE`.
fn very_alike() -> f64 {
    ALIKE * OF_HALF / OF_NINE_IN_TEN
}

/// The evidence that a share is more than half, at least: it is by the probable error of a share
/// (`divergence` from a half is half the square of the deviation).
fn more_than_half() -> f64 {
    OF_HALF * OF_HALF / 2.0
}

/// How often kernels tick, by their configuration (kernel/Kconfig.hz). Since Linux 6.4 the ticks
/// are at multiples of their period on the monotonic clock (tick-common.c).
const TICKS_HZ: [f64; 4] = [100.0, 250.0, 300.0, 1000.0];

/// The share of steps that are distributed exponentially within half of their mean.
fn within_half_by_chance() -> f64 {
    (-0.5_f64).exp() - (-1.5_f64).exp()
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Claim<'a> {
    /// The points in which it was found, ascending, in nanoseconds.
    pub(super) at: &'a [f64],
    pub(super) bursts: &'a [Compact],
    pub(super) line: FittedLine,
    /// The points are those that carry the work.
    pub(super) of_work: bool,
    pub(super) origin: u64,
    /// Minus the logarithm of the probability of a false alarm that is allowed.
    pub(super) enough: f64,
}

impl Claim<'_> {
    /// How likely the period is right, if it has a proof: `prior_odds` times the Bayes factor of
    /// the phases in the mean over the releases but the first, whose phase is as likely as any.
    /// Whether they are of a rhythm is one question for all of a thread, so they count as one.
    pub(super) fn confidence(&self, fold: &mut Fold) -> Option<f64> {
        if self.is_a_tick() {
            return None;
        }
        let groups = self.groups();
        let by_sleeps = fold.evidence(&self.sleeps_before(&groups).0, self.line.period);
        let phases = fold.evidence(&groups, self.line.period);
        let follows_its_jobs = by_sleeps.left > phases.left;
        let releases = self.releases(&groups)?;
        let proved = !follows_its_jobs && self.is_a_clock(&groups, phases.left)
            || !(follows_its_jobs && self.mostly_waits()) && self.steps_are_alike(&releases)
            || self.sleeps_are_alike(&releases)
            || self.of_work && self.polls_are_in_time(&groups);
        let others = groups.len().saturating_sub(1).max(1);
        let odds = PRIOR_ODDS * (phases.most / others as f64).exp();
        proved.then_some(odds / (1.0 + odds))
    }

    /// Most releases are soon after a tick of this period, and by another thread or at few ticks.
    pub(super) fn is_a_tick(&self) -> bool {
        let ticks = TICKS_HZ.map(|hz| 1e9 / hz);
        let is_alike = |tick: &&f64| (self.line.period / **tick - 1.0).abs() < ALIKE;
        let Some(tick) = ticks.iter().find(is_alike) else {
            return false;
        };
        let origin = self.origin as f64 % tick;
        let mut bursts = self.bursts.iter().map(|b| (self.times(b).0, b)).peekable();
        let releases = self.line.nearest(self.at);
        let beats = releases.last().map_or(0, |last| last.0 - releases[0].0);
        let few = (releases.len() as f64) < MET * beats as f64;
        let at_a_tick = releases.iter().filter(|(_, at)| {
            while bursts.next_if(|burst| burst.0 < *at).is_some() {}
            let is_woken = bursts.peek().is_some_and(|burst| burst.1.waker() != 0);
            (few || is_woken) && (origin + at) % tick < ALIKE * tick
        });
        at_a_tick.count() as f64 > 0.5 * releases.len() as f64
    }

    /// The evidence of the phases is enough for a grid, and lateness does not add up.
    fn is_a_clock(&self, groups: &[f64], evidence: f64) -> bool {
        let [first, _, .., last] = groups else {
            return false;
        };
        let hypotheses = ((last - first) / self.line.period * super::range()).ln();
        evidence > crowded() * groups.len() as f64
            && evidence > self.enough + hypotheses
            && self.keeps_time()
    }

    fn groups(&self) -> Vec<f64> {
        let mut last = f64::NEG_INFINITY;
        let mut groups = self.at.to_vec();
        groups.retain(|&at| {
            let first = at - last > self.line.period / COARSEST as f64;
            last = at;
            first
        });
        groups
    }

    /// One in so many groups of wakeups as a job has; none if they are fewer than two jobs.
    fn releases(&self, groups: &[f64]) -> Option<Vec<f64>> {
        let steps = groups.len().saturating_sub(1) as f64;
        let of_a_job = steps * self.line.period / (groups.last()? - groups.first()?);
        let of_a_job = (of_a_job.round() as usize).max(1);
        let releases = groups.iter().step_by(of_a_job).copied();
        Some(releases.collect()).filter(|releases: &Vec<f64>| releases.len() > 1)
    }

    /// When a burst woke, and when it blocked, in nanoseconds after the origin.
    fn times(&self, burst: &Compact) -> (f64, f64) {
        let after = |at: Instant| at.as_ns().saturating_sub(self.origin) as f64;
        (after(burst.woke()), after(burst.blocked()))
    }

    /// For how long the thread slept before each of these releases but the first, and for how long
    /// in all since the release before.
    fn sleeps_before(&self, releases: &[f64]) -> (Vec<f64>, Vec<f64>) {
        let mut bursts = self.bursts.iter().map(|b| self.times(b)).peekable();
        let (mut worked, mut ended) = (0.0, 0.0);
        let sleeps = releases.windows(2).map(|pair| {
            let mut slept = 0.0;
            while let Some((woke, blocked)) = bursts.next_if(|times| times.0 < pair[1]) {
                if woke > pair[0] {
                    slept += (woke - ended).max(0.0);
                }
                if !self.of_work || woke <= pair[0] {
                    worked = blocked;
                }
                ended = blocked;
            }
            let last = (pair[1] - worked).max(0.0);
            (last, slept + (pair[1] - ended).max(0.0))
        });
        sleeps.unzip()
    }

    /// More than half of the time the thread waits for the CPU.
    fn mostly_waits(&self) -> bool {
        let (Some(first), Some(last)) = (self.bursts.first(), self.bursts.last()) else {
            return false;
        };
        let waits: Span = self.bursts.iter().map(Compact::waited).sum();
        waits * 2 > last.blocked().since(first.woke())
    }

    fn keeps_time(&self) -> bool {
        let releases = &self.line.nearest(self.at);
        let mut scratch = Vec::new();
        fit::robust_line(releases, &mut scratch).is_some_and(|line| {
            line.is_tight()
                && line.has_period(self.line.period)
                && fit::von_neumann(releases, &line, &mut scratch) > HELD
        })
    }

    fn steps_are_alike(&self, releases: &[f64]) -> bool {
        let steps = Steps::new(releases.windows(2).map(|w| w[1] - w[0]).collect());
        steps.is_some_and(|steps| {
            (steps.median / self.line.period - 1.0).abs() < ALIKE
                && (steps.half_are_very_alike(self.enough)
                    || steps.nearly_all_are_alike(self.enough))
        })
    }

    /// Nearly every release is at the first poll after it was due: the steps differ from the period
    /// by less than a poll.
    fn polls_are_in_time(&self, releases: &[f64]) -> bool {
        let after = |burst: &Compact| self.times(burst).0;
        let in_time = releases.windows(2).filter(|w| {
            let polls = self.bursts.partition_point(|b| after(b) < w[1]);
            let last = self.bursts[..polls].last();
            let poll = w[1] - last.map_or(w[0], after);
            poll < 0.5 * self.line.period && (w[1] - w[0] - self.line.period).abs() < poll
        });
        let of = releases.len().saturating_sub(1) as f64;
        let met = in_time.count() as f64;
        met >= NEARLY_ALL * of && divergence(of, met, within_half_by_chance()) >= self.enough
    }

    fn sleeps_are_alike(&self, releases: &[f64]) -> bool {
        let mean = (releases[releases.len() - 1] - releases[0]) / (releases.len() - 1) as f64;
        (mean / self.line.period - 1.0).abs() < ALIKE
            && Steps::new(self.sleeps_before(releases).1).is_some_and(|sleeps| {
                sleeps.half_are_very_alike(self.enough) && sleeps.nearly_all_are_alike(self.enough)
            })
    }
}

struct Steps {
    all: Vec<f64>,
    median: f64,
}

impl Steps {
    fn new(mut all: Vec<f64>) -> Option<Self> {
        all.sort_unstable_by(f64::total_cmp);
        let median = *all.get(all.len() / 2)?;
        Some(Self { all, median })
    }

    fn half_are_very_alike(&self, enough: f64) -> bool {
        self.are_alike(0.5, very_alike(), enough)
    }

    fn nearly_all_are_alike(&self, enough: f64) -> bool {
        self.are_alike(NEARLY_ALL, ALIKE, enough)
    }

    /// Whether this share of the steps is within so much of their median, or of a multiple of it,
    /// where a job was left out; and surely more than half are, and by more than chance. The chance
    /// is that of steps spread over `spread` of the median (Chernoff's bound).
    fn are_alike(&self, share: f64, within: f64, enough: f64) -> bool {
        let limit = (within * self.median).max(EXACT_NS);
        let deviation = |&step: &f64| {
            let beats = (step / self.median).round().max(1.0);
            (step - beats * self.median).abs()
        };
        let deviations = self.all.iter().map(deviation);
        let alike: Vec<f64> = deviations.filter(|&by| by <= limit).collect();
        let reach = alike.iter().copied().fold(0.0, f64::max);
        let (met, of) = (alike.len() as f64, self.all.len() as f64);
        met / of >= share
            && divergence(of, met, 0.5) >= more_than_half()
            && divergence(of, met, 2.0 * reach / (fit::spread() * self.median)) >= enough
    }
}

/// The evidence for a clock in each wakeup, at least: that of a thread half of whose wakeups may be
/// anywhere, and the others in one of the `coarsest` bins. With many wakeups less would be past any
/// doubt, and of no use.
fn crowded() -> f64 {
    let bin = 1.0 / COARSEST as f64;
    divergence(1.0, 0.5 + 0.5 * bin, bin)
}
