use crate::analysed::{analysed, is_period};
use crate::made_up::periodic::Periodic;
use crate::synthetic::Random;

/// The reach around a beat, as a share of the period.
const REACH: f64 = 0.02;

/// The share of the time that is within `reach` of a point, by trying.
fn coverage(points: &[f64], reach: f64) -> f64 {
    let (first, last) = (points[0], points[points.len() - 1]);
    let tries = 200;
    let near = (0..tries).filter(|&i| {
        let time = first + (last - first) * f64::from(i) / f64::from(tries);
        points.iter().any(|p| (p - time).abs() <= reach)
    });
    near.count() as f64 / f64::from(tries)
}

/// How surprising `met` of `beats` is, if each is met with a chance of `chance`.
fn surprise(beats: f64, met: f64, chance: f64) -> f64 {
    let share = met / beats;
    if share <= chance {
        return 0.0;
    }
    let missed = if share < 1.0 {
        (1.0 - share) * ((1.0 - share) / (1.0 - chance)).ln()
    } else {
        0.0
    };
    beats * (share * (share / chance).ln() + missed)
}

/// The period between 10 and 60 ms, and the phase, whose beats the points meet most surprisingly.
fn twin(points: &[f64]) -> f64 {
    let (first, last) = (points[0], points[points.len() - 1]);
    let mut best = (0.0, 0.0);
    let mut period = 10e6;
    while period < 60e6 {
        let reach = REACH * period;
        let chance = coverage(points, reach);
        let mut phase = 0.0;
        while phase < period {
            let (mut beats, mut met) = (0.0, 0.0);
            let mut due = first + phase;
            while due <= last {
                let near = points.partition_point(|&p| p < due - reach);
                beats += 1.0;
                met += f64::from(points.get(near).is_some_and(|&p| p <= due + reach));
                due += period;
            }
            let score = surprise(beats, met, chance);
            if score > best.0 {
                best = (score, period);
            }
            phase += reach;
        }
        period *= 1.002;
    }
    best.1
}

#[test]
fn the_analyser_finds_what_trying_everything_finds() {
    for seed in 0..12 {
        let mut random = Random::new(seed);
        let thread = Periodic {
            period_ns: random.ratio_between(12e6, 50e6),
            releases: 25,
            jitter: random.between(0.0, 0.02),
            missing: random.between(0.0, 0.2),
            spurious: random.between(0.0, 0.3),
            ..Periodic::PLAIN
        };
        let mut bursts = thread.bursts(&mut random);
        bursts.sort_by_key(|burst| burst.woke);
        let points: Vec<f64> = bursts.iter().map(|b| b.woke.as_ns() as f64).collect();
        let tried = twin(&points);
        let rhythms = analysed(bursts);
        assert!(
            is_period(rhythms.first(), tried),
            "seed {seed}: tried {tried}, found {rhythms:?} of {thread:?}"
        );
    }
}
