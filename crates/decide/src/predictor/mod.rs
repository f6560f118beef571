//! The runtime that a thread's next jobs will need, judged by its last ones.
//!
//! One file per predictor; [`build`] makes any of them from the same [`Parameters`]. All start
//! generous and shrink to fit, raise the runtime at once when a job exhausts it (but [`Rate`], as
//! the paper has it), and plan anew at once when the rate changes.

mod binary;
mod catch_up;
mod excess;
mod pattern;
mod percentile;
mod rate;
mod statistical;
mod windowed;

use std::fmt;

use onbeat_model::{Demand, Instant, Job, Reservation, Span};

pub use binary::Binary;
pub use percentile::{Percentile, START_UP_JOBS};
pub use rate::Rate;

use pattern::Pattern;
use windowed::Windowed;

/// Predicts the runtime that one thread needs in every period.
///
/// Assumes that the caller (1) calls [`job`](Self::job) once for each finished job, in order, with
/// a demand that already holds the job, and only jobs of the present rhythm; (2) reports an
/// exhausted budget when it happens, before the job that it interrupts; (3) asks
/// [`runtime`](Self::runtime) after each of these.
pub trait Predictor: Send {
    /// A job is done; `demand` is that of the last jobs, this one included.
    fn job(&mut self, job: &Job, demand: &Demand);

    /// The thread executed for `executed` in the last sampling interval, which was `over` long.
    fn sampled(&mut self, _executed: Span, _over: Span) {}

    /// The runtime of the reservation `held` ran out at `at`, in the middle of a job.
    fn exhausted(&mut self, at: Instant, held: Reservation);

    fn rate_changed(&mut self, period: Span);

    /// The CPUs have another speed now, at which the same cycles take `factor` times as long
    /// (LFS++, section 6.3: the history is reset to the projected budget).
    fn speed_changed(&mut self, factor: f64);

    /// The runtime wanted in every `period`, at most the period; none as long as nothing is known.
    fn runtime(&self, period: Span) -> Option<Span>;

    /// The part of that runtime that is wanted for longer than it takes to catch up after an
    /// overrun.
    fn lasting(&self, period: Span) -> Option<Span> {
        self.runtime(period)
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum PredictorKind {
    #[default]
    Percentile,
    Rate,
    MeanSigma,
    Binary,
    /// GRACE-OS's budget, which the wanted share of the last jobs stayed within.
    Statistical,
    /// A budget for each place of a group of jobs that repeats.
    Pattern,
}

impl PredictorKind {
    pub const ALL: [Self; 6] = [
        Self::Percentile,
        Self::Rate,
        Self::MeanSigma,
        Self::Binary,
        Self::Statistical,
        Self::Pattern,
    ];

    /// The name on the command line and in the log.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Percentile => "percentile",
            Self::Rate => "rate",
            Self::MeanSigma => "mean-sigma",
            Self::Binary => "binary",
            Self::Statistical => "statistical",
            Self::Pattern => "pattern",
        }
    }
}

impl fmt::Display for PredictorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The parameters of the predictors; each uses what concerns it.
///
/// The defaults are the paper's where it gives any (LFS++, section 5.3: N = 16, p = (N-j)/N with
/// j = 1, x in 0.1..0.2; section 7.3: S = 1 s). A value out of its range counts as the nearest one
/// inside.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parameters {
    /// N: how many of the last jobs (or samples) are looked at.
    pub window: usize,
    /// j: how many of those may need more than predicted.
    pub above: usize,
    /// x, the spread factor: how much more is asked for than predicted.
    pub spread: f64,
    /// S: how often the rate predictor samples the CPU time.
    pub sampling: Span,
    /// k: how many standard deviations above the mean the mean-sigma predictor asks for.
    pub sigmas: f64,
    /// The share of jobs that may need more than the percentile predictor asked for: over the last
    /// 1024 jobs it widens its spread until no more do. For the statistical predictor, one less
    /// rho. Between 0 and 1.
    pub overruns: f64,
    /// The widest spread it may learn that way, as a fraction of the percentile. At least `spread`.
    pub widest_spread: f64,
    /// By what factor an exhausted runtime is raised until the thread has caught up.
    pub boost: f64,
    /// The same of the rate predictor; 1, and no raise, as the paper has it.
    pub rate_boost: f64,
    /// The most that repeated raises may come to, as a factor of the runtime first exhausted.
    pub boost_most: f64,
    /// How much the binary controller raises the runtime after a job that exhausted it, ...
    pub binary_raise: f64,
    /// ... and lowers it after a job that did not.
    pub binary_lower: f64,
    /// For which job after the last one told the pattern predictor's runtime is. At least 1. Jobs
    /// that are cut out of bursts are known to have ended when the next one's burst has.
    pub ahead: usize,
}

impl Default for Parameters {
    fn default() -> Self {
        Self {
            window: 16,
            above: 1,
            spread: 0.10,
            sampling: Span::from_secs(1),
            sigmas: 3.0,
            overruns: 0.01,
            widest_spread: 1.0,
            boost: 2.0,
            rate_boost: 1.0,
            boost_most: 4.0,
            binary_raise: 0.25,
            binary_lower: 0.01,
            ahead: 2,
        }
    }
}

#[must_use]
pub fn build(kind: PredictorKind, parameters: Parameters) -> Box<dyn Predictor> {
    match kind {
        PredictorKind::Percentile => Box::new(Percentile::new(parameters)),
        PredictorKind::Rate => Box::new(Rate::new(parameters)),
        PredictorKind::MeanSigma => Box::new(Windowed::new(windowed::mean_sigma, parameters)),
        PredictorKind::Binary => Box::new(Binary::new(parameters)),
        PredictorKind::Statistical => Box::new(Windowed::new(statistical::rule, parameters)),
        PredictorKind::Pattern => Box::new(Pattern::new(parameters)),
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Pace(Option<Span>);

impl Pace {
    fn of(job: &Job) -> Self {
        Self(Some(job.deadline.since(job.release)))
    }

    /// By what factor the runtime for a job grows at the new `period` if the bandwidth is to stay.
    /// A longer period may be several jobs seen as one, and with the runtime of one of them the
    /// thread would never sleep again, nor show its true period. A shorter one changes nothing.
    fn stretch(self, period: Span) -> f64 {
        self.0.map_or(1.0, |old| period.ratio(old).max(1.0))
    }
}

/// By what factor a prediction from few jobs is enlarged: twice for one job, half as much more for
/// two, nothing once the window of `window` jobs is full.
fn generosity(jobs: usize, window: usize) -> f64 {
    if jobs >= window {
        1.0
    } else {
        1.0 + 1.0 / jobs.max(1) as f64
    }
}

/// The nearest-rank quantile that at most `above` of `window` jobs exceed, of however many there
/// are in `demand`: while the window fills, the maximum.
#[must_use]
pub fn percentile(demand: &Demand, parameters: &Parameters) -> Option<Span> {
    let window = parameters.window.max(1);
    let above = parameters.above.min(window - 1);
    demand.quantile(1.0 - above as f64 / window as f64)
}

#[cfg(test)]
mod tests {
    use onbeat_model::{Burst, TaskId};

    use super::*;

    #[test]
    fn every_predictor_knows_nothing_at_first() {
        for kind in PredictorKind::ALL {
            let predictor = build(kind, Parameters::default());
            assert_eq!(predictor.runtime(Span::from_ms(40)), None);
        }
    }

    #[test]
    fn every_predictor_asks_at_another_speed_for_the_projected_budget() {
        let (period, ms) = (Span::from_ms(100), Span::from_ms);
        for kind in PredictorKind::ALL {
            let parameters = Parameters::default();
            let mut predictor = build(kind, parameters);
            let mut demand = Demand::new(parameters.window);
            for n in 0..200 {
                let release = Instant::ZERO + period * n;
                let executed = ms(20 + n % 3);
                demand.record(executed);
                let job = Job::of(
                    &Burst::alone(TaskId::recorded(1), release, executed),
                    release,
                    release + period,
                );
                predictor.job(&job, &demand);
                if n % 10 == 9 {
                    predictor.sampled(ms(210), period * 10);
                }
            }
            let before = predictor.runtime(period).unwrap();
            predictor.speed_changed(1.6);
            demand.scale(1.6);
            let after = predictor.runtime(period).unwrap();
            assert!(
                after.abs_diff(before.scale(1.6)) < Span::from_us(1),
                "{kind}"
            );
            let held = Reservation::implicit(after, period).unwrap();
            predictor.exhausted(Instant::ZERO + period * 200, held);
            let raised = predictor.runtime(period).unwrap();
            predictor.speed_changed(0.5);
            let halved = predictor.runtime(period).unwrap();
            assert!(halved.abs_diff(raised / 2) < Span::from_us(1), "{kind}");
        }
    }

    #[test]
    fn the_percentile_is_the_papers_second_maximum_of_sixteen() {
        let mut demand = Demand::new(16);
        for ms in 1..=16 {
            demand.record(Span::from_ms(ms));
        }
        let parameters = Parameters::default();
        assert_eq!(percentile(&demand, &parameters), Some(Span::from_ms(15)));
        let strict = Parameters {
            above: 0,
            ..parameters
        };
        assert_eq!(percentile(&demand, &strict), Some(Span::from_ms(16)));
    }
}
