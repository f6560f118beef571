//! A predictor that plans anew with every job, and from nothing but the window of the last jobs'
//! demands: what is left to say of one is its rule.
//!
//! GRACE-OS's statistical budget (section 2.3) is one: of the histogram of the last jobs' demands,
//! the smallest boundary that at least the wanted share of them stayed within (eq. 2). rho is one
//! less the parameters' share of overruns, or what the thread says itself.
//!
//! In the paper an overrunning job goes on at best effort. SCHED_DEADLINE has nothing of the kind:
//! it makes the job wait for its next replenishment, where it would delay the next one in turn. So
//! the budget is raised until the thread has caught up, as every predictor does, where there is
//! room for it. That raise is not lasting: no speed of the CPUs follows from it.

use onbeat_model::{Demand, Instant, Job, Reservation, Span};

use super::catch_up::CatchUp;
use super::{Pace, Parameters, Predictor, generosity};

/// r. A group is then 2% of the range of demands, and a budget too large by that at most.
const GROUPS: u64 = 50;
/// The first 50 jobs tell enough of the distribution (GRACE-OS, section 4.2).
const KNOWN: usize = 50;

/// The `rule` gives the need of the next jobs, from the last ones' demands; none as long as nothing
/// is known.
pub struct Windowed<R> {
    rule: R,
    parameters: Parameters,
    planned: Option<Span>,
    pace: Pace,
    catch_up: CatchUp,
}

impl<R> Windowed<R> {
    #[must_use]
    pub fn new(rule: R, parameters: Parameters) -> Self {
        Self {
            rule,
            parameters,
            planned: None,
            pace: Pace::default(),
            catch_up: CatchUp::default(),
        }
    }
}

impl<R: Fn(&Demand, &Parameters) -> Option<Span> + Send> Predictor for Windowed<R> {
    fn job(&mut self, job: &Job, demand: &Demand) {
        self.catch_up.job(job, self.planned);
        self.pace = Pace::of(job);
        self.planned = (self.rule)(demand, &self.parameters);
    }

    fn exhausted(&mut self, at: Instant, held: Reservation) {
        self.catch_up.exhausted(at, held, &self.parameters);
    }

    fn rate_changed(&mut self, period: Span) {
        let stretch = self.pace.stretch(period);
        self.planned = self.planned.map(|planned| planned.scale(stretch));
        self.pace = Pace(Some(period));
        self.catch_up.clear();
    }

    fn speed_changed(&mut self, factor: f64) {
        self.planned = self.planned.map(|planned| planned.scale(factor));
        self.catch_up.scale(factor);
    }

    fn runtime(&self, period: Span) -> Option<Span> {
        self.catch_up.over(self.planned, period)
    }

    fn lasting(&self, period: Span) -> Option<Span> {
        self.planned.map(|planned| planned.min(period))
    }
}

/// GRACE-OS's: see the file's head.
#[must_use]
pub fn statistical(parameters: Parameters) -> Box<dyn Predictor> {
    Box::new(Windowed::new(budget, parameters))
}

fn budget(demand: &Demand, parameters: &Parameters) -> Option<Span> {
    let rho = 1.0 - parameters.overruns.clamp(0.0, 1.0);
    let window = KNOWN.min(parameters.window);
    Some(boundary(demand, rho)?.scale(generosity(demand.len(), window)))
}

fn boundary(demand: &Demand, rho: f64) -> Option<Span> {
    let jobs = demand.sorted();
    let (&least, &most) = (jobs.first()?, jobs.last()?);
    // In whole nanoseconds, so that the last one is the largest demand.
    let above = |group| least + Span::from_ns(((most - least) * group).as_ns().div_ceil(GROUPS));
    let within = |bound: &Span| jobs.partition_point(|job| job <= bound) as f64 / jobs.len() as f64;
    let is_enough = |bound: &Span| within(bound) >= rho;
    Some((0..GROUPS).map(above).find(is_enough).unwrap_or(most))
}

#[cfg(test)]
mod tests {
    use super::*;
    use onbeat_model::{Burst, TaskId};

    const PERIOD: Span = Span::from_ms(40);

    fn hear(predictor: &mut dyn Predictor, demand: &mut Demand, number: u64, executed: Span) {
        let release = Instant::ZERO + PERIOD * number;
        demand.record(executed);
        let job = Job::of(
            &Burst::alone(TaskId::recorded(1), release, executed),
            release,
            release + PERIOD,
        );
        predictor.job(&job, demand);
    }

    fn after_a_hundred_jobs(overruns: f64) -> Box<dyn Predictor> {
        let parameters = Parameters {
            overruns,
            window: 100,
            ..Parameters::default()
        };
        let mut predictor = statistical(parameters);
        let mut demand = Demand::new(100);
        for n in 0..100 {
            hear(
                predictor.as_mut(),
                &mut demand,
                n,
                Span::from_ms(1 + n % 20),
            );
        }
        predictor
    }

    #[test]
    fn the_budget_is_what_the_wanted_share_of_jobs_stays_within() {
        let budget = |overruns| after_a_hundred_jobs(overruns).runtime(PERIOD).unwrap();
        // 19 groups of milliseconds in 50 groups: up to a boundary, which is at most 0.38 ms apart.
        for (overruns, ms) in [(0.05, 19), (0.5, 10), (0.0, 20)] {
            let exact = Span::from_ms(ms);
            assert!(budget(overruns) >= exact, "{overruns}");
            assert!(budget(overruns) <= exact + Span::from_us(380), "{overruns}");
        }
    }
}
