mod simulation;

use onbeat_decide::predictor::{Parameters, Percentile};
use onbeat_model::Span;
use simulation::{Noise, Outcome, Scene, play};

const JOBS: usize = 3000;

/// The three tasks of LFS++, Table I: period, and execution time from the load.
fn table_one() -> [(Span, Span); 3] {
    [(3505, 0.30), (8220, 0.28), (100_000, 0.21)].map(|(period_us, load)| {
        let period = Span::from_us(period_us);
        (period, period.scale(load))
    })
}

/// Jobs of `mean` with a relative standard deviation of `sigma`; one in `1 / outliers` takes
/// longer by a fraction drawn evenly from `longer`.
fn jobs(
    seed: u64,
    mean: Span,
    sigma: f64,
    outliers: f64,
    longer: std::ops::Range<f64>,
) -> Vec<Span> {
    let mut noise = Noise(seed);
    (0..JOBS)
        .map(|_| {
            let normal = 1.0 + sigma * noise.normal();
            let drawn = noise.unit();
            let outlier = longer.start + (longer.end - longer.start) * noise.unit();
            let factor = if drawn < outliers { outlier } else { 0.0 };
            mean.scale(normal.max(0.5) * (1.0 + factor))
        })
        .collect()
}

fn steady(seed: u64, mean: Span, sigma: f64) -> Vec<Span> {
    jobs(seed, mean, sigma, 0.0, 0.0..0.0)
}

/// The demands of rt-app's tasks on a machine that is not quite quiet.
fn scenes(seed: u64, period: Span, mean: Span) -> Vec<(&'static str, Scene)> {
    let plain = || Scene::of(period, steady(seed, mean, 0.02));
    vec![
        ("steady within 2%", plain()),
        (
            "steady within 5%",
            Scene::of(period, steady(seed, mean, 0.05)),
        ),
        (
            "reserved in the middle of a job",
            Scene {
                out_of_step: mean.scale(0.7),
                ..plain()
            },
        ),
        (
            "a period found 0.1% too long",
            Scene {
                server_period_error: 0.001,
                ..plain()
            },
        ),
        (
            "a period found 0.1% too short",
            Scene {
                server_period_error: -0.001,
                ..plain()
            },
        ),
        (
            "3% of jobs longer by 10% to 20%",
            Scene::of(period, jobs(seed, mean, 0.02, 0.03, 0.1..0.2)),
        ),
        (
            "0.5% of jobs longer by half to three halves",
            Scene::of(period, jobs(seed, mean, 0.02, 0.005, 0.5..1.5)),
        ),
        (
            "3% longer by 10% to 20%, enforced at a tick of 4 ms",
            Scene {
                tick: Span::from_ms(4),
                ..Scene::of(period, jobs(seed, mean, 0.02, 0.03, 0.1..0.2))
            },
        ),
        (
            "the CPU stolen for 0.3 ms in every 50th job",
            Scene {
                stolen: |job| Span::from_us(if job % 50 == 0 { 300 } else { 0 }),
                ..plain()
            },
        ),
    ]
}

fn with_the_default(scene: &Scene) -> Outcome {
    play(scene, &mut Percentile::new(Parameters::default()))
}

fn each(mut check: impl FnMut(&str, &Scene)) {
    for seed in 1..=4 {
        for (period, mean) in table_one() {
            for (name, scene) in scenes(seed, period, mean) {
                check(&format!("{name}, period {period}, seed {seed}"), &scene);
            }
        }
    }
}

#[test]
fn the_default_keeps_table_one_in_time_for_at_most_a_quarter_more_than_it_uses() {
    each(|name, scene| {
        let outcome = with_the_default(scene);
        assert!(outcome.misses <= 0.01, "{name}: {outcome:?}");
        assert!(outcome.reserved_over_used <= 1.25, "{name}: {outcome:?}");
    });
}

#[test]
fn a_lasting_rise_of_the_demand_costs_two_jobs_at_most() {
    let seed = 1;
    for (period, mean) in table_one() {
        let mut demand = steady(seed, mean, 0.02);
        for job in &mut demand[1000..] {
            *job = job.scale(1.6);
        }
        let scene = Scene::of(period, demand);
        let outcome = with_the_default(&scene);
        let told = format!("period {period}: {outcome:?}");
        assert!(outcome.longest_run_of_misses <= 2, "{told}");
        assert!(outcome.reserved_over_used <= 1.25, "{told}");
    }
}

#[test]
fn frames_of_two_sizes_get_what_the_larger_ones_need() {
    let mut noise = Noise(1);
    let frames = (0..JOBS)
        .map(|i| {
            let size = if i % 12 == 0 { 20.0 } else { 12.0 };
            Span::from_ms(1).scale(size * (1.0 + 0.03 * noise.normal()))
        })
        .collect();
    let outcome = with_the_default(&Scene::of(Span::from_ms(40), frames));
    assert!(outcome.misses <= 0.01, "{outcome:?}");
}
