use onbeat_decide::predictor::{Parameters, Predictor};
use onbeat_model::{Burst, Demand, Instant, Job, Reservation, Span, TaskId};

use super::*;

/// Tells the predictor of these jobs, in time, from a fresh window on.
fn tell(predictor: &mut dyn Predictor, period: Span, jobs: &[Span]) {
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

fn rate(is_raised: bool) -> Rate {
    Rate::new(Parameters::default(), Rate::SAMPLING, is_raised)
}

/// The rate form was told of so many ms in a second.
fn all_that_saw(used_ms: u64) -> impl Iterator<Item = Box<dyn Predictor>> {
    let mut sampled = rate(false);
    sampled.sampled(Span::from_ms(used_ms), Span::from_secs(1));
    let named = NAMED.map(|(_, build)| build(Parameters::default()));
    named.into_iter().chain([Box::new(sampled) as _])
}

#[test]
fn none_asks_for_less_bandwidth_when_the_period_seems_to_be_a_multiple() {
    let (period, slower) = (Span::from_ms(10), Span::from_ms(50));
    for (n, mut predictor) in all_that_saw(300).enumerate() {
        tell(&mut *predictor, period, &[Span::from_ms(3); 16]);
        predictor.rate_changed(slower);
        let wanted = ms(predictor.runtime(slower));
        assert!(wanted >= 15.0, "{n}: {wanted}");
    }
}

#[test]
fn the_rate_form_is_the_papers_formula() {
    let mut predictor = rate(false);
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
    let after_exhaustion = |is_raised| {
        let mut predictor = rate(is_raised);
        predictor.sampled(Span::from_ms(250), Span::from_secs(1));
        let period = Span::from_ms(40);
        let runtime = predictor.runtime(period).expect("a sample is known");
        let held = Reservation::implicit(runtime, period).expect("11 of 40 ms");
        predictor.exhausted(Instant::ZERO, held);
        ms(predictor.runtime(period))
    };
    assert!((after_exhaustion(false) - 11.0).abs() < 1e-6);
    assert!((after_exhaustion(true) - 22.0).abs() < 1e-6);
}

#[test]
fn mean_plus_sigma_is_its_formula() {
    let parameters = Parameters {
        spread: 0.0,
        window: 2,
        ..Parameters::default()
    };
    let mut predictor = mean_sigma(parameters, 2.0);
    let jobs = [Span::from_ms(8), Span::from_ms(12)];
    tell(&mut *predictor, Span::from_ms(40), &jobs);
    assert!((ms(predictor.runtime(Span::from_ms(40))) - 14.0).abs() < 1e-6);
}

#[test]
fn at_another_speed_each_asks_for_the_projected_budget() {
    let period = Span::from_ms(100);
    let jobs: Vec<Span> = (0..200).map(|n| Span::from_ms(20 + n % 3)).collect();
    for (n, mut predictor) in all_that_saw(210).enumerate() {
        tell(&mut *predictor, period, &jobs);
        let before = predictor.runtime(period).unwrap();
        predictor.speed_changed(1.6);
        let after = predictor.runtime(period).unwrap();
        assert!(after.abs_diff(before.scale(1.6)) < Span::from_us(1), "{n}");
    }
}
