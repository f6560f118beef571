//! Whether a period that was found is that of a clock, or that of steps or sleeps of one size.
//!
//! The search finds the period that many wakeups have in common. A thread that sleeps for much the
//! same time again and again has one as well, for a while. The alternative is therefore a renewal
//! process: a thread whose every step is drawn anew, from whatever distribution. A period is told
//! if it has at least one of these proofs:
//!
//! - **A clock.** The phases of the wakeups are evidence for a grid (`fold`), also after the number
//!   of grids that could have been found is paid for; and lateness does not add up. That of a
//!   renewal process does: it is a random walk.
//! - **Steps of one size.** A timer that starts anew after each job keeps to no clock, and yet the
//!   next release is known. Half of the steps are very much alike, or nearly all are alike.
//! - **Sleeps of one size**, with jobs between them that vary.
//! - **Polls in time.** A thread that polls for its next job begins each at the first poll after it
//!   was due.

use onbeat_model::Span;

use super::compact::Compact;
use super::evidence::{RANGE, SPREAD, divergence};
use super::fit::{self, Line};
use super::fold::Fold;

/// The evidence for a clock, in each wakeup: a phase is by a third likelier where it was than
/// anywhere. With many wakeups less would be past any doubt, and of no use.
const CROWDED: f64 = 0.3;
/// Points nearer than this part of the period are one job's.
const GROUP: f64 = 4.0;
/// Von Neumann's ratio of the lateness of releases that keep to a clock is above this. It is that
/// of the likelihoods of two normal models with a variance each, of the lateness and of its steps:
/// at 1 both are as likely.
const HELD: f64 = 1.0;
/// Steps are alike if this share of them differs from their median by at most that: of normal ones
/// with a standard deviation below 2.2% and 3.5% of the step.
const ALIKE: [(f64, f64); 2] = [(0.5, 0.015), (0.85, 0.05)];
/// Steps within this, in nanoseconds, are alike at any size: timers fire up to their slack of 50 us
/// late, and the next one in time.
const EXACT_NS: f64 = 100_000.0;
/// A poll comes after at most this share of the period.
const POLL: f64 = 0.4;
/// This share of steps that are distributed exponentially is within `POLL` of their mean.
const BY_CHANCE: f64 = 0.3;
/// The median step is the period within this, and so is the mean step of a thread whose sleeps are
/// alike: polls delay a release by some percent.
const SAME: f64 = 0.05;

/// The share of right answers with one, two, and more proofs, in the development part of the
/// corpora: 100 of 141, 319 of 334, 499 of 501 (experiments/period-accuracy).
const RIGHT: [f64; 3] = [0.7, 0.95, 0.995];

/// How many proofs a period has, at least one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Proofs(usize);

impl Proofs {
    /// The share of answers with as many that are right.
    pub(super) fn right(self) -> f64 {
        RIGHT[(self.0 - 1).min(RIGHT.len() - 1)]
    }
}

/// A period to be proved.
#[derive(Clone, Copy, Debug)]
pub(super) struct Claim<'a> {
    /// The points in which it was found, ascending, in nanoseconds.
    pub(super) at: &'a [f64],
    /// All bursts, in the order of their wakeups.
    pub(super) bursts: &'a [Compact],
    pub(super) line: Line,
    /// The points are those that carry the work.
    pub(super) of_work: bool,
    /// Points are after this.
    pub(super) origin: u64,
    /// Minus the logarithm of the probability of a false alarm that is allowed.
    pub(super) enough: f64,
}

impl Claim<'_> {
    /// How many proofs the period has; none if it has none.
    pub(super) fn proofs(&self, fold: &mut Fold) -> Option<Proofs> {
        let groups = self.groups();
        let proofs = [
            self.is_a_clock(&groups, fold),
            self.steps_are_alike(&groups),
            self.sleeps_are_alike(),
            self.of_work && self.polls_are_in_time(&groups),
        ];
        let count = proofs.into_iter().filter(|&holds| holds).count();
        (count > 0).then_some(Proofs(count))
    }

    /// The phases are evidence for a grid, and lateness does not add up.
    fn is_a_clock(&self, groups: &[f64], fold: &mut Fold) -> bool {
        let [first, _, .., last] = groups else {
            return false;
        };
        let hypotheses = ((last - first) / self.line.period * RANGE).ln();
        let evidence = fold.at(groups, self.line.period).evidence;
        evidence > CROWDED * groups.len() as f64
            && evidence > self.enough + hypotheses
            && self.keeps_time()
    }

    /// The first point of each group.
    fn groups(&self) -> Vec<f64> {
        let mut last = f64::NEG_INFINITY;
        let mut groups = self.at.to_vec();
        groups.retain(|&at| {
            let first = at - last > self.line.period / GROUP;
            last = at;
            first
        });
        groups
    }

    /// The lateness of the releases does not add up.
    fn keeps_time(&self) -> bool {
        let releases = &self.line.nearest(self.at);
        let mut scratch = Vec::new();
        fit::robust_line(releases, &mut scratch).is_some_and(|line| {
            line.is_tight()
                && line.has_period(self.line.period)
                && fit::von_neumann(releases, &line, &mut scratch) > HELD
        })
    }

    fn steps_are_alike(&self, groups: &[f64]) -> bool {
        let steps = Steps::new(groups.windows(2).map(|w| w[1] - w[0]).collect());
        steps.is_some_and(|steps| {
            (steps.median / self.line.period - 1.0).abs() < SAME
                && ALIKE.iter().any(|&kind| steps.are_alike(kind, self.enough))
        })
    }

    /// Nearly every release is at the first poll after it was due: the steps differ from the period
    /// by less than a poll.
    fn polls_are_in_time(&self, releases: &[f64]) -> bool {
        let after = |burst: &Compact| burst.woke().as_ns().saturating_sub(self.origin) as f64;
        let in_time = releases.windows(2).filter(|w| {
            let polls = self.bursts.partition_point(|b| after(b) < w[1]);
            let last = polls
                .checked_sub(1)
                .map_or(w[0], |last| after(&self.bursts[last]));
            let poll = w[1] - last;
            poll < POLL * self.line.period && (w[1] - w[0] - self.line.period).abs() < poll
        });
        let (met, of) = (
            in_time.count() as f64,
            releases.len().saturating_sub(1) as f64,
        );
        met >= ALIKE[1].0 * of && divergence(of, met, BY_CHANCE) >= self.enough
    }

    fn sleeps_are_alike(&self) -> bool {
        let ns = |span: Span| span.as_ns() as f64;
        let pairs = self.bursts.windows(2);
        let sleeps: Vec<f64> = pairs
            .map(|w| ns(w[1].woke().since(w[0].blocked())))
            .collect();
        let (Some(first), Some(last)) = (self.bursts.first(), self.bursts.last()) else {
            return false;
        };
        let mean = ns(last.woke().since(first.woke())) / sleeps.len() as f64;
        (mean / self.line.period - 1.0).abs() < SAME
            && Steps::new(sleeps).is_some_and(|sleeps| sleeps.are_alike(ALIKE[0], self.enough))
    }
}

/// Steps or sleeps, in nanoseconds, and their median.
struct Steps {
    all: Vec<f64>,
    median: f64,
}

impl Steps {
    /// None of no steps.
    fn new(mut all: Vec<f64>) -> Option<Self> {
        all.sort_unstable_by(f64::total_cmp);
        let median = *all.get(all.len() / 2)?;
        Some(Self { all, median })
    }

    /// Whether this share of the steps is within so much of their median, or of a multiple of it,
    /// where a job was left out; and so many are, by more than chance. The chance is that of steps
    /// spread over `SPREAD` of the median (Chernoff's bound).
    fn are_alike(&self, (share, within): (f64, f64), enough: f64) -> bool {
        let limit = (within * self.median).max(EXACT_NS);
        let deviation = |&step: &f64| {
            let beats = (step / self.median).round().max(1.0);
            (step - beats * self.median).abs()
        };
        let deviations = self.all.iter().map(deviation);
        let alike: Vec<f64> = deviations.filter(|&by| by <= limit).collect();
        let reach = alike.iter().copied().fold(0.0, f64::max);
        let (met, of) = (alike.len() as f64, self.all.len() as f64);
        met / of >= share && divergence(of, met, 2.0 * reach / (SPREAD * self.median)) >= enough
    }
}
