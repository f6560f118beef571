//! The requests of predictors after the first jobs, and after a change of rate: no request waits
//! for a window to fill.

use onbeat_decide::predictor::{Parameters, Predictor, PredictorKind, build};
use onbeat_model::{Burst, Demand, Instant, Job, Reservation, Span, TaskId};

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
        let mut predictor = build(PredictorKind::Percentile, Parameters::default());
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
    for kind in PredictorKind::ALL {
        let mut predictor = build(kind, Parameters::default());
        tell(&mut *predictor, Span::from_ms(10), Span::from_ms(3), 16);
        predictor.sampled(Span::from_ms(300), Span::from_secs(1));
        predictor.rate_changed(Span::from_ms(50));
        let wanted = ms(predictor.runtime(Span::from_ms(50)));
        assert!(wanted >= 15.0, "{kind}: {wanted}");
    }
}

#[test]
fn the_rate_form_is_the_papers_formula() {
    let mut predictor = build(PredictorKind::Rate, Parameters::default());
    let second = Span::from_secs(1);
    for used_ms in [300, 500, 400] {
        predictor.sampled(Span::from_ms(used_ms), second);
    }
    let wanted = ms(predictor.runtime(Span::from_ms(40)));
    assert!((wanted - 1.1 * 40.0 * 0.5).abs() < 1e-6, "{wanted}");
    let slower = ms(predictor.runtime(Span::from_ms(80)));
    assert!((slower - 2.0 * wanted).abs() < 1e-6, "{slower}");
    predictor.sampled(Span::from_ms(300), Span::from_ms(500));
    let higher = ms(predictor.runtime(Span::from_ms(40)));
    assert!((higher - 1.1 * 40.0 * 0.6).abs() < 1e-6, "{higher}");
}

#[test]
fn the_papers_rate_form_leaves_an_exhausted_runtime_as_it_is() {
    let after_exhaustion = |rate_boost| {
        let parameters = Parameters {
            rate_boost,
            ..Parameters::default()
        };
        let mut predictor = build(PredictorKind::Rate, parameters);
        predictor.sampled(Span::from_ms(250), Span::from_secs(1));
        let period = Span::from_ms(40);
        let runtime = predictor.runtime(period).expect("a sample is known");
        let held = Reservation::implicit(runtime, period).expect("11 of 40 ms");
        predictor.exhausted(Instant::ZERO, held);
        ms(predictor.runtime(period))
    };
    assert!((after_exhaustion(1.0) - 11.0).abs() < 1e-6);
    assert!((after_exhaustion(2.0) - 22.0).abs() < 1e-6);
}

#[test]
fn mean_plus_sigma_is_its_formula() {
    let mut predictor = build(
        PredictorKind::MeanSigma,
        Parameters {
            spread: 0.0,
            sigmas: 2.0,
            window: 2,
            ..Parameters::default()
        },
    );
    let jobs = [Span::from_ms(8), Span::from_ms(12)];
    tell_each(&mut *predictor, Span::from_ms(40), &jobs);
    assert!((ms(predictor.runtime(Span::from_ms(40))) - 14.0).abs() < 1e-6);
}

#[test]
fn no_predictor_asks_for_more_than_the_period() {
    for kind in PredictorKind::ALL {
        let mut predictor = build(kind, Parameters::default());
        tell(&mut *predictor, Span::from_ms(10), Span::from_ms(9), 1);
        assert_eq!(
            predictor.runtime(Span::from_ms(10)),
            Some(Span::from_ms(10)),
            "{kind}"
        );
    }
}
