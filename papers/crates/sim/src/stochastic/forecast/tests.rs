use proptest::prelude::*;

use super::*;

fn forecast(jobs: impl IntoIterator<Item = u64>) -> Forecast {
    let mut forecast = Forecast::new(100);
    jobs.into_iter()
        .for_each(|us| forecast.record(Span::from_us(us)));
    forecast
}

/// The smallest and the largest factor but for `of` at both ends.
fn spread(forecast: &Forecast, of: usize) -> f64 {
    let sorted = forecast.next().unwrap().factors.sorted();
    sorted[sorted.len() - 1 - of].ratio(sorted[of])
}

#[test]
fn a_group_that_repeats_is_foretold_job_by_job() {
    let group = [9000, 2000, 3000, 5000, 2000, 3000, 2500];
    let jobs = group.into_iter().cycle().take(7 * 30);
    let forecast = forecast(jobs.chain([9000]));
    let next = forecast.next().unwrap();
    assert!(next.demand.abs_diff(Span::from_us(2000)) < Span::from_us(1));
    // The first groups were not known to be any.
    assert!(spread(&forecast, 10) < 1.01);
}

#[test]
fn a_new_level_is_foretold_after_a_few_jobs() {
    let noisy = |level: u64| (0..60).map(move |n| level + (n * 7919) % (level / 10));
    let forecast = forecast(noisy(2000).chain(noisy(6000).take(8)));
    let next = forecast.next().unwrap().demand;
    assert!(next > Span::from_us(5500), "{next}");
    assert!(spread(&forecast, 5) < 1.3);
}

#[test]
fn nothing_is_foretold_from_nothing() {
    assert!(forecast([]).next().is_none());
    let constant = forecast([4000, 4000, 4000]);
    assert_eq!(constant.next().unwrap().demand, Span::from_us(4000));
    assert_eq!(constant.next().unwrap().factors.max(), Some(ONE));
}

/// The twin: everything from all jobs so far, as the opening words say it, and nothing kept.
fn from_the_beginning(jobs: &[f64]) -> Option<f64> {
    let rules: Vec<ForecastRule> = MEANS
        .into_iter()
        .map(ForecastRule::Mean)
        .chain((2..=LONGEST).map(ForecastRule::Season))
        .collect();
    let mean = |jobs: &[f64]| jobs.iter().sum::<f64>() / jobs.len() as f64;
    let by = |rule: ForecastRule, jobs: &[f64]| match rule {
        ForecastRule::Mean(of) => (jobs.len() >= of).then(|| mean(&jobs[jobs.len() - of..])),
        ForecastRule::Season(group) => (jobs.len() >= group + LEVEL).then(|| {
            let before = &jobs[..jobs.len() - group];
            let level = mean(&jobs[jobs.len() - LEVEL..]);
            let level_before = mean(&before[before.len() - LEVEL..]);
            jobs[jobs.len() - group] * (level / level_before).sqrt()
        }),
    };
    let error_of = |rule| {
        let mut errors =
            (0..jobs.len()).filter_map(|at| Some((jobs[at] / by(rule, &jobs[..at])?).ln().abs()));
        let first = errors.next()?;
        Some(errors.fold(first, |mean, error| (1.0 - WEIGHT) * mean + WEIGHT * error))
    };
    let tried: Vec<(f64, f64)> = rules
        .into_iter()
        .filter_map(|rule| Some((error_of(rule)?, by(rule, jobs)?)))
        .collect();
    let least = tried.iter().map(|(error, _)| *error).reduce(f64::min)?;
    let least = least.max(LEAST_ERROR);
    let weight = |error: f64| (SHARPNESS * (1.0 - error / least)).exp();
    let weights: f64 = tried.iter().map(|(error, _)| weight(*error)).sum();
    let product = tried
        .iter()
        .map(|(error, forecast)| forecast.powf(weight(*error) / weights));
    Some(product.product())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..crate::tests::same_cases() })]

    #[test]
    fn what_is_kept_forecasts_what_all_jobs_together_would(
        jobs in prop::collection::vec(1..20_000_u64, 0..70),
        window in 1..50_usize,
    ) {
        let jobs: Vec<f64> = jobs.into_iter().map(|us| us as f64 * 1000.0).collect();
        let mut forecast = Forecast::new(window);
        let mut factors = Vec::new();
        for at in 0..jobs.len() {
            if let Some(twin) = from_the_beginning(&jobs[..at]) {
                factors.push(jobs[at] / twin);
            }
            forecast.record(Span::from_ns(jobs[at] as u64));
        }
        let twin = from_the_beginning(&jobs).filter(|_| !factors.is_empty());
        let next = forecast.next();
        prop_assert_eq!(next.is_some(), twin.is_some());
        if let (Some(next), Some(twin)) = (next, twin) {
            prop_assert!((next.demand.as_ns() as f64 - twin).abs() < 2.0 + twin * 1e-9);
            let mut last = factors.split_off(factors.len().saturating_sub(window));
            last.sort_by(f64::total_cmp);
            prop_assert_eq!(last.len(), next.factors.len());
            for (kept, factor) in next.factors.sorted().iter().zip(last) {
                prop_assert!((kept.as_ns() as f64 - factor * 1e6).abs() < 2.0 + factor);
            }
        }
    }
}
