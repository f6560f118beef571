//! The runtime that a thread's next jobs will need, judged by its last ones.
//!
//! [`Percentile`] is the default, [`statistical`] goes with a speed that follows the budgets. Both
//! start generous and shrink to fit, raise the runtime at once when a job exhausts it, and plan
//! anew at once when the rate changes.

mod catch_up;
mod percentile;
mod windowed;

use onbeat_model::{Demand, Instant, Job, Reservation, Span};

pub use catch_up::CatchUp;
pub use percentile::{Percentile, START_UP_JOBS};
pub use windowed::{Windowed, statistical};

/// Predicts the runtime that one thread needs in every period.
///
/// Assumes that the caller (1) calls [`job`](Self::job) once for each finished job, in order, with
/// a demand that already holds the job, and only jobs of the present rhythm; (2) reports an
/// exhausted budget when it happens, before the job that it interrupts; (3) asks
/// [`runtime`](Self::runtime) after each of these.
pub trait Predictor: Send {
    fn job(&mut self, job: &Job, demand: &Demand);

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

pub type BuildPredictor = fn(Parameters) -> Box<dyn Predictor>;

/// The parameters of the predictors; each uses what concerns it.
///
/// The defaults are the paper's where it gives any (LFS++, section 5.3: N = 16, p = (N-j)/N with
/// j = 1, x in 0.1..0.2). A value out of its range counts as the nearest one inside.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parameters {
    /// N: how many of the last jobs are looked at.
    pub window: usize,
    /// j: how many of those may need more than predicted.
    pub above: usize,
    /// x, the spread factor: how much more is asked for than predicted.
    pub spread: f64,
    /// The share of jobs that may need more than the percentile predictor asked for: over the last
    /// 1024 jobs it widens its spread until no more do. For the statistical predictor, one less
    /// rho. Between 0 and 1.
    pub overruns: f64,
    /// The widest spread it may learn that way, as a fraction of the percentile. At least `spread`.
    pub widest_spread: f64,
    /// By what factor an exhausted runtime is raised until the thread has caught up.
    pub boost: f64,
    /// The most that repeated raises may come to, as a factor of the runtime first exhausted.
    pub boost_most: f64,
}

impl Default for Parameters {
    fn default() -> Self {
        Self {
            window: 16,
            above: 1,
            spread: 0.10,
            overruns: 0.01,
            widest_spread: 1.0,
            boost: 2.0,
            boost_most: 4.0,
        }
    }
}

/// The period of the last job.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pace(pub Option<Span>);

impl Pace {
    #[must_use]
    pub fn of(job: &Job) -> Self {
        Self(Some(job.deadline.since(job.release)))
    }

    /// By what factor the runtime for a job grows at the new `period` if the bandwidth is to stay.
    /// A longer period may be several jobs seen as one, and with the runtime of one of them the
    /// thread would never sleep again, nor show its true period. A shorter one changes nothing.
    #[must_use]
    pub fn stretch(self, period: Span) -> f64 {
        self.0.map_or(1.0, |old| period.ratio(old).max(1.0))
    }
}

/// By what factor a prediction from few jobs is enlarged: twice for one job, half as much more for
/// two, nothing once the window of `window` jobs is full.
#[must_use]
pub fn generosity(jobs: usize, window: usize) -> f64 {
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
        for build in [Percentile::build, statistical] {
            let predictor = build(Parameters::default());
            assert_eq!(predictor.runtime(Span::from_ms(40)), None);
        }
    }

    #[test]
    fn every_predictor_asks_at_another_speed_for_the_projected_budget() {
        let (period, ms) = (Span::from_ms(100), Span::from_ms);
        for build in [Percentile::build, statistical] {
            let parameters = Parameters::default();
            let mut predictor = build(parameters);
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
            }
            let before = predictor.runtime(period).unwrap();
            predictor.speed_changed(1.6);
            demand.scale(1.6);
            let after = predictor.runtime(period).unwrap();
            assert!(after.abs_diff(before.scale(1.6)) < Span::from_us(1));
            let held = Reservation::implicit(after, period).unwrap();
            predictor.exhausted(Instant::ZERO + period * 200, held);
            let raised = predictor.runtime(period).unwrap();
            predictor.speed_changed(0.5);
            let halved = predictor.runtime(period).unwrap();
            assert!(halved.abs_diff(raised / 2) < Span::from_us(1));
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
