//! The requests of predictors after the first jobs, and after a change of rate: no request waits
//! for a window to fill.

use onbeat_decide::predictor::{Parameters, Percentile, Predictor, statistical};
use onbeat_model::{Burst, Demand, Instant, Job, Span, TaskId};

/// Tells the predictor of `count` jobs of `executed` each, in time, from a fresh window on.
fn tell(predictor: &mut dyn Predictor, period: Span, executed: Span, count: usize) {
    tell_each(predictor, period, &vec![executed; count]);
}

fn tell_each(predictor: &mut dyn Predictor, period: Span, jobs: &[Span]) {
    let mut demand = Demand::new(Parameters::default().window);
    for (n, &executed) in (0..).zip(jobs) {
        let release = Instant::ZERO + period * n;
        demand.record(executed);
        let job = Job::of(
            &Burst::alone(TaskId::recorded(1), release, executed),
            release,
            release + period,
        );
        predictor.job(&job, &demand);
    }
}

fn ms(runtime: Option<Span>) -> f64 {
    runtime.map_or(0.0, Span::as_ms_f64)
}

#[test]
fn at_another_rate_the_default_asks_for_the_old_bandwidth_or_runtime_until_it_knows_the_new_jobs() {
    let span = Span::from_ms;
    for (from, to, jobs, first, then) in [(20, 40, 10, 22.0, 11.0), (40, 20, 5, 11.0, 5.5)] {
        let mut predictor = Percentile::build(Parameters::default());
        predictor.rate_changed(span(from));
        tell(&mut *predictor, span(from), span(10), 16);
        predictor.rate_changed(span(to));
        assert!((ms(predictor.runtime(span(to))) - first).abs() < 1e-6);
        tell(&mut *predictor, span(to), span(jobs), 16);
        assert!((ms(predictor.runtime(span(to))) - then).abs() < 1e-6);
    }
}

#[test]
fn no_predictor_asks_for_less_bandwidth_when_the_period_seems_to_be_a_multiple() {
    for build in [Percentile::build, statistical] {
        let mut predictor = build(Parameters::default());
        tell(&mut *predictor, Span::from_ms(10), Span::from_ms(3), 16);
        predictor.rate_changed(Span::from_ms(50));
        let wanted = ms(predictor.runtime(Span::from_ms(50)));
        assert!(wanted >= 15.0, "{wanted}");
    }
}

#[test]
fn no_predictor_asks_for_more_than_the_period() {
    for build in [Percentile::build, statistical] {
        let mut predictor = build(Parameters::default());
        tell(&mut *predictor, Span::from_ms(10), Span::from_ms(9), 1);
        let all = Some(Span::from_ms(10));
        assert_eq!(predictor.runtime(Span::from_ms(10)), all);
    }
}
