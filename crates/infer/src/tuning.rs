//! Every constant of this crate: its value, its unit, what raising it costs, and why it is as it
//! is.
//!
//! With the feature `ablation` each is read from the environment (`ONBEAT_TRIAL=NAME=VALUE,...`),
//! so that one binary shows what each of them is good for: experiments/period-accuracy has the
//! table and its command, which halves and doubles each number and switches each mechanism off. A
//! name in brackets is a test that fails then.

use onbeat_model::Span;

use crate::period::divergence;

#[cfg(feature = "ablation")]
fn trial<T: std::str::FromStr>(name: &str) -> Option<T> {
    let trials = std::env::var("ONBEAT_TRIAL").ok()?;
    let mut pairs = trials.split(',').filter_map(|pair| pair.split_once('='));
    pairs.find(|pair| pair.0 == name)?.1.parse().ok()
}

macro_rules! constants {
    ($($(#[doc = $doc:expr])* $name:ident: $type:ty = $value:expr;)*) => {
        $(
            $(#[doc = $doc])*
            #[cfg(not(feature = "ablation"))]
            #[inline]
            pub(crate) const fn $name() -> $type {
                $value
            }
            $(#[doc = $doc])*
            #[cfg(feature = "ablation")]
            pub(crate) fn $name() -> $type {
                static VALUE: std::sync::LazyLock<$type> =
                    std::sync::LazyLock::new(|| trial(stringify!($name)).unwrap_or($value));
                *VALUE
            }
        )*
    };
}

constants! {
    /// The probability of a false alarm per analysis, and of one per job of the tracker. Raised: a
    /// thread without rhythm is called periodic more often.
    false_alarm_rate: f64 = 0.01;
    /// For how many seconds bursts are kept: ten periods of the longest. Raised: a change of rate
    /// is seen later.
    window_s: u64 = 10;
    /// How many bursts are kept. Raised: 24 bytes and 0.3 us an analysis for each.
    capacity: usize = 1024;
    /// The shortest period in ns: 0.5 ms, and 1% for the fit. Lowered: more periods to try.
    shortest_ns: f64 = 0.495e6;
    /// The longest in ns: 1 s, and 1%. Raised: more periods to try, and too few beats in a window.
    longest_ns: f64 = 1.01e9;
    /// The fewest bursts that show a rhythm: as many again as can be off a line. Raised: it is
    /// found later.
    fewest: usize = 6;
    /// Periods that differ by this share are the same: what issue and score call right.
    same: f64 = 0.01;
    /// Steps that differ by this share are alike. Raised: more sporadic threads are called
    /// periodic.
    alike: f64 = 0.05;
    /// This share is nearly all. Raised: fewer threads have a proof.
    nearly_all: f64 = 0.9;
    /// A rhythm has releases at this share of its beats. A half of the period would meet half of
    /// them, and some by chance.
    met: f64 = 0.7;
    /// A smaller difference, in ns, is none: the clock of a recording may be this coarse.
    exact_ns: f64 = 1_000.0;
    /// Points more standard deviations than this from their line are none of it: one normal point
    /// in 2,000.
    far: f64 = 3.5;
    /// Points that scatter by more than this share of the period follow no line: were they
    /// anywhere, it would be 0.29.
    loose: f64 = 0.2;
    /// The cost of a beat left out, where a beat met gains one.
    missed: f64 = 0.5;
    /// Differences from a wakeup to this many after it are counted, because a job has up to as
    /// many; and as many fractions of a period are tried. Raised: a longer search.
    lags: usize = 8;
    /// How many periods are followed. Raised: a longer search.
    candidates: usize = 6;
    /// Periods are followed through this many points, the last ones, which bounds the cost.
    recent: usize = 256;
    /// The bins of the coarsest histogram of phases: wakeups spread over more than a quarter of the
    /// period have no phase.
    coarsest: usize = 4;
    /// The von Neumann ratio above which lateness does not add up: 2 if each beat is late on its
    /// own, 1 where two normal models, of the lateness and of its steps, are as likely.
    held: f64 = 1.2;
    /// Two kinds of gaps, or of work, have a valley between them as wide as this ratio. Raised: the
    /// bursts of a job are not one group. Lowered: polls are taken for jobs.
    wide: f64 = 2.0;
    /// One value in this many may lie in the valley.
    strays: usize = 25;
    /// Lateness with a smaller kurtosis than this has edges: spread evenly it is 1.8, normal 3.
    edged: f64 = 2.7;
    /// The jobs that the tracker remembers. Raised: drift and changes of rate are followed later.
    memory: u32 = 32;
    /// The growth of the tracker's percentile of errors for one beyond it.
    growth: f64 = 0.15;
    /// How sure it is that a thread has to do with most jobs of a pipeline. Raised: it is served
    /// later.
    sure_of_a_stage: f64 = 0.999;
    /// The odds that a period is right, before its phases are looked at. With 3.1 as many answers
    /// of the development part are right as their confidence says in the mean, and with 2.5 to 3.8
    /// if a program is left out. The many answers for few programs are the easy ones, hence less
    /// (experiments/period-accuracy). Raised: wrong answers are said to be sure.
    prior_odds: f64 = 2.0;
}

// The mechanisms, which the ablation switches off.
constants! {
    /// The expiries of timers alone, if the thread mostly sleeps for these (no corpus tells
    /// expiries). [`a_player_that_talks_to_its_display_has_the_rhythm_of_its_timer`]
    timers: bool = true;
    /// Bursts in groups: the releases are the first of each.
    groups: bool = true;
    /// Wakeups that carry the work, between others that poll.
    workers: bool = true;
    /// Each point is tried as a release before candidates are followed.
    each_point_first: bool = true;
    /// A fraction of the period, if all wakeups fit it better.
    fractions: bool = true;
    /// The line nearest to all wakeups, not only to those in which the period was found.
    tighter: bool = true;
    /// The line in the middle of the narrowest band.
    band: bool = true;
    /// A period of the kernel's tick has no proof where other threads wake soon after ticks.
    /// [`who_waits_for_one_that_runs_at_the_ticks_has_no_rhythm`]
    ticks: bool = true;
    clock: bool = true;
    sleeps_of_a_process: bool = true;
    /// In it, the demand that lateness does not add up.
    lateness: bool = true;
    /// The proof by steps of one size.
    steps: bool = true;
    /// The proof by sleeps of one size.
    sleeps: bool = true;
    /// The proof by polls in time.
    polls: bool = true;
}

/// More than this share is most. A program that asks for fewer of its jobs asks to be starved.
pub(crate) const HALF: f64 = 0.5;

/// The deviations within which half of normal values lie, and nine of ten.
const OF_HALF: f64 = 0.674_490;
const OF_NINE_IN_TEN: f64 = 1.644_854;

/// The weight of the prior of a histogram in wakeups: one peak is expected (Perks, 1947).
pub(crate) const MASS: f64 = 1.0;

/// A thread of a pipeline works in each so many-th job at the most.
pub(crate) const MOST_EVERY: usize = 4;

/// No period that a program tells is shorter: the kernel reserves for none that is
/// (`sched_deadline_period_min_us`).
pub(crate) const SHORTEST_TOLD: Span = Span::from_us(100);

/// The logarithm of the range of periods.
pub(crate) fn range() -> f64 {
    (longest_ns() / shortest_ns()).ln()
}

/// The fewest points that can be off a line. As many steps are soon alike by chance.
pub(crate) fn enough_for_a_line() -> usize {
    fewest() / 2
}

/// A period is looked for in a train as many times as long, surely more than the steps that may be
/// alike by chance.
pub(crate) fn turns() -> f64 {
    enough_for_a_line() as f64 + HALF
}

/// Half of normal steps differ by this share at most, if `nearly_all`, nine of ten, are `alike`.
pub(crate) fn very_alike() -> f64 {
    alike() * OF_HALF / OF_NINE_IN_TEN
}

/// The evidence that a share is more than half, at least: it is by the probable error of a share
/// (`divergence` from a half is half the square of the deviation).
pub(crate) fn more_than_half() -> f64 {
    OF_HALF * OF_HALF / 2.0
}

/// How many periods may lie between two points of a run: a point after more of them gains less than
/// the beats left out cost.
pub(crate) fn leap() -> usize {
    1 + (1.0 / missed()) as usize
}

/// The bins of the finest histogram of phases, a power of two: narrower ones would tell phases
/// apart in periods that are the `same`.
pub(crate) fn finest() -> usize {
    ((1.0 / same()) as usize + 1).next_power_of_two() / 2
}

/// The evidence for a clock in each wakeup, at least: that of a thread half of whose wakeups may be
/// anywhere, and the others in one of the `coarsest` bins. With many wakeups less would be past any
/// doubt, and of no use.
pub(crate) fn crowded() -> f64 {
    let bin = 1.0 / coarsest() as f64;
    divergence(1.0, HALF + HALF * bin, bin)
}

/// The values of which at least one is of each kind: with fewer, `nearly_all` are of one.
pub(crate) fn side() -> usize {
    (1.0 / (1.0 - nearly_all())).round() as usize
}

/// The steps of a thread that sleeps more or less evenly are spread over this much of their mean:
/// as points that just follow a line, to both sides.
pub(crate) fn spread() -> f64 {
    2.0 * loose()
}

/// Releases scatter around their beats by at most this share of the period. `far` of more would be
/// most of the period, and every beat would be met.
pub(crate) fn tight() -> f64 {
    loose() / 2.0
}

/// The largest deviation of a step that is followed, as a share of the period: of releases that
/// scatter as much as they may, none is farther off.
pub(crate) fn tolerance() -> f64 {
    far() * tight()
}

/// The least gate of the tracker, as a share of the period: a release after a beat left out is met
/// also by a period that is just the `same`.
pub(crate) fn narrowest_gate() -> f64 {
    2.0 * same()
}

/// The widest, to either side: one bin of the `coarsest` in all. A thread without rhythm hits it
/// less often than the third of the time with which a rhythm is lost.
pub(crate) fn widest_gate() -> f64 {
    HALF / coarsest() as f64
}
