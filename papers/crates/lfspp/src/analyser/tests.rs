use std::f64::consts::TAU;

use super::*;

fn train(period_ms: f64, offsets_ms: &[f64], jobs: usize) -> Vec<Instant> {
    let at = |job: usize, offset: f64| {
        Instant::from_ns(((5_000.0 + job as f64 * period_ms + offset) * 1e6) as u64)
    };
    (0..jobs)
        .flat_map(|job| offsets_ms.iter().map(move |&offset| at(job, offset)))
        .collect()
}

fn analyser_of(events: &[Instant], config: Config) -> Analyser {
    let mut analyser = Analyser::new(config).unwrap();
    events.iter().for_each(|&at| analyser.add_event(at));
    analyser
}

/// Equation 4 as printed, with nothing kept between calls: the slow twin of `Spectrum`.
fn amplitudes_by_plain_sum(
    events: &[Instant],
    lowest_hz: f64,
    step_hz: f64,
    bins: usize,
) -> Vec<f64> {
    let origin = events.first().copied().unwrap_or(Instant::ZERO);
    let amplitude = |bin: usize| {
        let frequency = lowest_hz + bin as f64 * step_hz;
        let (mut re, mut im) = (0.0, 0.0);
        for event in events {
            let angle = -TAU * frequency * (event.offset_from(origin) as f64 / 1e9);
            re += angle.cos();
            im += angle.sin();
        }
        f64::hypot(re, im)
    };
    (0..bins).map(amplitude).collect()
}

#[test]
fn the_incremental_spectrum_is_the_plain_sum_over_the_window() {
    let config = Config {
        lowest_hz: 0.0,
        highest_hz: 1000.0,
        ..Config::default()
    };
    let events = train(33.3667, &[0.0, 2.1, 7.9], 200);
    let analyser = analyser_of(&events, config);
    let newest = *events.last().unwrap();
    let in_window: Vec<Instant> = events
        .into_iter()
        .filter(|&at| newest.since(at) <= config.horizon)
        .collect();
    assert_eq!(analyser.events(), in_window.len());
    let plain = amplitudes_by_plain_sum(&in_window, 0.0, 0.1, 10_001);
    let incremental = analyser.spectrum();
    assert_eq!(incremental.len(), plain.len());
    for (bin, (a, b)) in incremental.iter().zip(&plain).enumerate() {
        assert!((a - b).abs() < 1e-8, "bin {bin}: {a} and {b}");
    }
    assert!((plain[0] - in_window.len() as f64).abs() < 1e-9);
}

#[test]
fn events_in_any_order_give_the_same_spectrum() {
    let mut events = train(20.0, &[0.0, 3.0], 30);
    let in_order = analyser_of(&events, Config::default()).spectrum();
    events.chunks_mut(5).for_each(<[Instant]>::reverse);
    let shuffled = analyser_of(&events, Config::default()).spectrum();
    for (a, b) in in_order.iter().zip(&shuffled) {
        assert!((a - b).abs() < 1e-8);
    }
}

#[test]
fn the_chosen_peak_is_the_one_with_the_highest_sum_among_those_above_the_threshold() {
    let config = Config {
        lowest_hz: 0.0,
        highest_hz: 9.0,
        step_hz: 1.0,
        threshold: 1.0,
        multiples: 3,
        tolerance_hz: 0.0,
        ..Config::default()
    };
    // Peaks at 2, 4 and 7 Hz; average 2.1. Sums: 2 Hz: 3+6+0, 4 Hz: 6+0, 7 Hz: 8.
    let amplitudes = [1.0, 1.0, 3.0, 1.0, 6.0, 1.0, 0.0, 8.0, 0.0, 0.0];
    assert_eq!(heuristic::choose(&amplitudes, &config), Some(2));
    let strict = Config {
        threshold: 1.5,
        ..config
    };
    // Step 3 discards 2 Hz, which would have won.
    assert_eq!(heuristic::choose(&amplitudes, &strict), Some(7));
    let one = Config {
        multiples: 1,
        ..config
    };
    assert_eq!(heuristic::choose(&amplitudes, &one), Some(7));
    let none = Config {
        threshold: 4.0,
        ..config
    };
    assert_eq!(heuristic::choose(&amplitudes, &none), None);
}

#[test]
fn epsilon_gathers_the_amplitudes_on_both_sides_of_a_multiple() {
    let config = Config {
        lowest_hz: 0.0,
        highest_hz: 9.0,
        step_hz: 1.0,
        threshold: 0.0,
        multiples: 2,
        tolerance_hz: 1.0,
        ..Config::default()
    };
    // 3 Hz: 1+5+1 and, around 6 Hz, 2+0+2. 8 Hz: 2+6+0.
    let amplitudes = [0.0, 0.0, 1.0, 5.0, 1.0, 2.0, 0.0, 2.0, 6.0, 0.0];
    assert_eq!(heuristic::choose(&amplitudes, &config), Some(3));
    let exact = Config {
        tolerance_hz: 0.0,
        ..config
    };
    assert_eq!(heuristic::choose(&amplitudes, &exact), Some(8));
}

#[test]
fn nothing_heard_is_not_periodic() {
    let mut analyser = Analyser::new(Config::default()).unwrap();
    assert_eq!(analyser.analyse(), None);
    analyser.add_event(Instant::from_ns(7));
    analyser.clear();
    assert_eq!((analyser.analyse(), analyser.events()), (None, 0));
}

#[test]
fn parameters_out_of_range_are_refused_with_their_name() {
    type Change = fn(&mut Config);
    let refusals: [(Change, &str); 10] = [
        (|it| it.lowest_hz = f64::NAN, "f_min"),
        (|it| it.highest_hz = 5.0, "f_max"),
        (|it| it.highest_hz = f64::INFINITY, "f_max"),
        (|it| it.step_hz = 0.0, "step"),
        (|it| it.step_hz = 1e-9, "step"),
        (|it| it.step_hz = 900.0, "step"),
        (|it| it.horizon = Span::ZERO, "window"),
        (|it| it.threshold = -1.0, "alpha"),
        (|it| it.multiples = 0, "k_max"),
        (|it| it.tolerance_hz = f64::NAN, "epsilon"),
    ];
    for (spoil, name) in refusals {
        let mut config = Config::default();
        spoil(&mut config);
        let error = Analyser::new(config).unwrap_err();
        assert!(error.contains(name), "{error}");
    }
}
