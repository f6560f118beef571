//! The constants of this crate. experiments/period-accuracy has the score that they are chosen by.

use onbeat_model::Span;

/// The probability of a false alarm per analysis, and of one per job of the tracker. Raised: a
/// thread without rhythm is called periodic more often.
pub(crate) const FALSE_ALARM_RATE: f64 = 0.01;
/// For how many seconds bursts are kept: ten periods of the longest. Raised: a change of rate is
/// seen later.
pub(crate) const WINDOW_S: u64 = 10;
/// How many bursts are kept. Raised: 24 bytes and 0.3 us an analysis for each.
pub(crate) const CAPACITY: usize = 1024;
/// The shortest period in ns: 0.5 ms, and 1% for the fit. Lowered: more periods to try.
pub(crate) const SHORTEST_NS: f64 = 0.495e6;
/// The longest in ns: 1 s, and 1%. Raised: more periods to try, and too few beats in a window.
pub(crate) const LONGEST_NS: f64 = 1.01e9;
/// The fewest bursts that show a rhythm: as many again as can be off a line. Raised: it is found
/// later.
pub(crate) const FEWEST: usize = 6;
/// Periods that differ by this share are the same: what issue and score call right.
pub(crate) const SAME: f64 = 0.01;
/// Steps that differ by this share are alike. Raised: more sporadic threads are called periodic.
pub(crate) const ALIKE: f64 = 0.05;
/// This share is nearly all. Raised: fewer threads have a proof.
pub(crate) const NEARLY_ALL: f64 = 0.9;
/// A rhythm has releases at this share of its beats. A half of the period would meet half of them,
/// and some by chance.
pub(crate) const MET: f64 = 0.7;
/// A smaller difference, in ns, is none: the clock of a recording may be this coarse.
pub(crate) const EXACT_NS: f64 = 1_000.0;
/// Points more standard deviations than this from their line are none of it: one normal point in
/// 2,000.
pub(crate) const FAR: f64 = 3.5;
/// Points that scatter by more than this share of the period follow no line: were they anywhere, it
/// would be 0.29.
pub(crate) const LOOSE: f64 = 0.2;
/// The cost of a beat left out, where a beat met gains one.
pub(crate) const MISSED: f64 = 0.5;
/// Differences from a wakeup to this many after it are counted, because a job has up to as many;
/// and as many fractions of a period are tried. Raised: a longer search.
pub(crate) const LAGS: usize = 8;
/// How many periods are followed. Raised: a longer search.
pub(crate) const CANDIDATES: usize = 6;
/// Periods are followed through this many points, the last ones, which bounds the cost.
pub(crate) const RECENT: usize = 256;
/// The bins of the coarsest histogram of phases: wakeups spread over more than a quarter of the
/// period have no phase.
pub(crate) const COARSEST: usize = 4;
/// The von Neumann ratio above which lateness does not add up: 2 if each beat is late on its own, 1
/// where two normal models, of the lateness and of its steps, are as likely.
pub(crate) const HELD: f64 = 1.2;
/// Two kinds of gaps, or of work, have a valley between them as wide as this ratio. Raised: the
/// bursts of a job are not one group. Lowered: polls are taken for jobs.
pub(crate) const WIDE: f64 = 2.0;
/// One value in this many may lie in the valley.
pub(crate) const STRAYS: usize = 25;
/// Lateness with a smaller kurtosis than this has edges: spread evenly it is 1.8, normal 3.
pub(crate) const EDGED: f64 = 2.7;
/// The jobs that the tracker remembers. Raised: drift and changes of rate are followed later.
pub(crate) const MEMORY: u32 = 32;
/// The growth of the tracker's percentile of errors for one beyond it.
pub(crate) const GROWTH: f64 = 0.15;
/// How sure it is that a thread has to do with most jobs of a pipeline. Raised: it is served later.
pub(crate) const SURE_OF_A_STAGE: f64 = 0.999;
/// The odds that a period is right, before its phases are looked at. With 3.1 as many answers of
/// the development part are right as their confidence says in the mean, and with 2.5 to 3.8 if a
/// program is left out. The many answers for few programs are the easy ones, hence less
/// (experiments/period-accuracy). Raised: wrong answers are said to be sure.
pub(crate) const PRIOR_ODDS: f64 = 2.0;

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
    (LONGEST_NS / SHORTEST_NS).ln()
}

/// The fewest points that can be off a line. As many steps are soon alike by chance.
pub(crate) fn enough_for_a_line() -> usize {
    FEWEST / 2
}

/// A period is looked for in a train as many times as long, surely more than the steps that may be
/// alike by chance.
pub(crate) fn turns() -> f64 {
    enough_for_a_line() as f64 + HALF
}

/// Half of normal steps differ by this share at most, if `nearly_all`, nine of ten, are `alike`.
pub(crate) fn very_alike() -> f64 {
    ALIKE * OF_HALF / OF_NINE_IN_TEN
}

/// The evidence that a share is more than half, at least: it is by the probable error of a share
/// (`divergence` from a half is half the square of the deviation).
pub(crate) fn more_than_half() -> f64 {
    OF_HALF * OF_HALF / 2.0
}

/// How many periods may lie between two points of a run: a point after more of them gains less than
/// the beats left out cost.
pub(crate) fn leap() -> usize {
    1 + (1.0 / MISSED) as usize
}

/// The bins of the finest histogram of phases, a power of two: narrower ones would tell phases
/// apart in periods that are the `same`.
pub(crate) fn finest() -> usize {
    ((1.0 / SAME) as usize + 1).next_power_of_two() / 2
}

/// The values of which at least one is of each kind: with fewer, `nearly_all` are of one.
pub(crate) fn side() -> usize {
    (1.0 / (1.0 - NEARLY_ALL)).round() as usize
}

/// The steps of a thread that sleeps more or less evenly are spread over this much of their mean:
/// as points that just follow a line, to both sides.
pub(crate) fn spread() -> f64 {
    2.0 * LOOSE
}

/// Releases scatter around their beats by at most this share of the period. `far` of more would be
/// most of the period, and every beat would be met.
pub(crate) fn tight() -> f64 {
    LOOSE / 2.0
}

/// The largest deviation of a step that is followed, as a share of the period: of releases that
/// scatter as much as they may, none is farther off.
pub(crate) fn tolerance() -> f64 {
    FAR * tight()
}

/// The least gate of the tracker, as a share of the period: a release after a beat left out is met
/// also by a period that is just the `same`.
pub(crate) fn narrowest_gate() -> f64 {
    2.0 * SAME
}

/// The widest, to either side: one bin of the `coarsest` in all. A thread without rhythm hits it
/// less often than the third of the time with which a rhythm is lost.
pub(crate) fn widest_gate() -> f64 {
    HALF / COARSEST as f64
}
