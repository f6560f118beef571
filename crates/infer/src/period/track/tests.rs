use super::*;
use onbeat_model::TaskId;

const MS: f64 = 1e6;
const START: f64 = 1e12;

fn locked(period_ms: f64, jitter_ms: f64) -> Tracker {
    Tracker::new(Rhythm {
        period: Span::from_ns((period_ms * MS) as u64),
        phase: Instant::from_ns(START as u64),
        jitter: Span::from_ns((jitter_ms * MS) as u64),
        confidence: 0.999,
    })
}

fn burst(at_ms: f64, busy_ms: f64) -> Burst {
    let at = |ms: f64| Instant::from_ns((START + ms * MS) as u64);
    Burst::alone(
        TaskId::recorded(1),
        at(at_ms),
        Span::from_ns((busy_ms * MS) as u64),
    )
}

struct Random(u64);

impl Random {
    fn next(&mut self) -> f64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.next()).sum::<f64>() - 6.0
    }
}

fn told(tracker: &mut Tracker, at_ms: impl IntoIterator<Item = f64>) -> Vec<Beat> {
    at_ms
        .into_iter()
        .map(|at| tracker.hear(&burst(at, 1.0)))
        .collect()
}

fn kept(beats: &[Beat]) -> bool {
    beats.iter().all(|&beat| beat == Beat::Kept)
}

/// With fifty releases from then on.
#[track_caller]
fn keeps(tracker: &mut Tracker, from_ms: f64, period_ms: f64) {
    let releases = (0..50).map(|n| from_ms + period_ms * f64::from(n));
    assert!(kept(&told(tracker, releases)));
}

fn off(tracker: &Tracker, at_ms: f64) -> f64 {
    let at = Instant::from_ns((START + at_ms * MS) as u64);
    tracker.rhythm().nearest_release(at).1.abs() as f64 / MS
}

#[test]
fn a_change_between_common_rates_is_noticed_within_five_jobs() {
    // Twice the rate takes three old periods: six jobs.
    for (before, after, jobs) in [
        (40.0, 33.333, 5),
        (33.333, 40.0, 5),
        (40.0, 41.667, 5),
        (20.0, 40.0, 5),
        (16.667, 33.333, 5),
        (40.0, 20.0, 6),
        (33.333, 16.667, 6),
        (10.0, 15.0, 5),
        (40.0, 60.0, 5),
        (21.333, 23.22, 5),
    ] {
        for jitter in [0.0, 0.01] {
            let mut random = Random(1);
            let mut jittered = |at: f64| at + jitter * before * random.normal();
            let mut tracker = locked(before, 0.5);
            let steady: Vec<f64> = (0..100).map(|n| jittered(before * f64::from(n))).collect();
            assert!(kept(&told(&mut tracker, steady)), "{before} ms alone");
            let last = 99.0 * before;
            let new: Vec<f64> = (1..=jobs)
                .map(|n| jittered(last + after * f64::from(n)))
                .collect();
            let beats = told(&mut tracker, new);
            assert!(
                beats.contains(&Beat::RateChanged),
                "from {before} ms to {after} ms with jitter {jitter}: {beats:?}"
            );
        }
    }
}

#[test]
fn a_slow_drift_is_followed_and_not_called_a_change() {
    let mut tracker = locked(20.0, 0.1);
    let (mut at, mut period) = (0.0, 20.0);
    let mut random = Random(2);
    for _ in 0..3000 {
        assert_eq!(
            tracker.hear(&burst(at + 0.05 * random.normal(), 1.0)),
            Beat::Kept
        );
        at += period;
        period *= 1.000_002;
    }
    let found = tracker.rhythm().period.as_ms_f64();
    assert!((found / period - 1.0).abs() < 1e-3, "{found} for {period}");
    assert!(off(&tracker, at) < 0.2, "{}", off(&tracker, at));
}

/// Of a thread with these wakeups for each release.
fn stays_locked(period: f64, mut wakeups: impl FnMut(&mut Random, f64) -> Vec<f64>) {
    let (mut tracker, mut random) = (locked(period, 0.1), Random(4));
    let mut changes = 0;
    for job in 0..500 {
        let mut at_ms = wakeups(&mut random, period * f64::from(job));
        at_ms.sort_by(f64::total_cmp);
        let beats = told(&mut tracker, at_ms);
        assert!(!beats.contains(&Beat::Lost), "job {job}");
        changes += beats.iter().filter(|&&b| b == Beat::RateChanged).count();
    }
    assert!(changes <= 3, "{changes} false changes in 500 jobs");
    let off = off(&tracker, period * 500.0);
    assert!(off < 0.5, "{off}");
}

#[test]
fn wakeups_for_nothing_jobs_left_out_and_releases_that_load_delays_do_not_unlock_it() {
    stays_locked(40.0, |random, release| {
        let mut all = vec![release + 0.1 * random.normal()];
        all.extend((0..8).map(|_| release + 1.0 + 38.0 * random.next()));
        all
    });
    stays_locked(10.0, |random, release| match random.next() {
        left_out if left_out < 0.25 => Vec::new(),
        _ => vec![release],
    });
    stays_locked(20.0, |random, release| match random.next() {
        late if late < 0.3 => vec![release + 9.0 * random.next()],
        _ => vec![release],
    });
}

#[test]
fn a_thread_that_overruns_its_releases_is_not_taken_off_the_beat() {
    let mut tracker = locked(20.0, 0.1);
    keeps(&mut tracker, 0.0, 20.0);
    let mut random = Random(7);
    let mut at = 1000.0;
    for _ in 0..60 {
        // Starved: each job ends past the next release, and the thread wakes off the beat.
        let busy = 21.0 + 30.0 * random.next();
        assert_eq!(tracker.hear(&burst(at, busy)), Beat::Kept);
        at += busy + 0.2;
    }
    let next = (at / 20.0).ceil() * 20.0;
    keeps(&mut tracker, next, 20.0);
    assert!(off(&tracker, next) < 0.2);
}

#[test]
fn a_paused_player_is_back_on_the_beat_within_four_jobs() {
    for shift in [0.0, 3.0, 7.7, 19.9, 31.0] {
        let mut tracker = locked(40.0, 0.2);
        keeps(&mut tracker, 0.0, 40.0);
        let resumed = 49.0 * 40.0 + 3000.0 + shift;
        let beats = told(&mut tracker, (0..4).map(|n| resumed + 40.0 * f64::from(n)));
        assert!(kept(&beats), "{shift}: {beats:?}");
        assert!(
            off(&tracker, resumed) < 0.5,
            "{shift}: {}",
            off(&tracker, resumed)
        );
        keeps(&mut tracker, resumed + 160.0, 40.0);
    }
}

#[test]
fn a_thread_that_stops_being_periodic_is_lost() {
    for seed in 0..20 {
        let mut tracker = locked(40.0, 0.2);
        keeps(&mut tracker, 0.0, 40.0);
        let mut random = Random(seed);
        let mut at = 2000.0;
        let lost_after = (0..200).position(|_| {
            at += -40.0 * (1.0 - random.next()).ln();
            tracker.hear(&burst(at, 0.01)) == Beat::Lost
        });
        assert!(
            lost_after.is_some_and(|jobs| jobs < 60),
            "{seed}: {lost_after:?}"
        );
        assert_eq!(tracker.hear(&burst(at + 40.0, 1.0)), Beat::Lost);
    }
}

#[test]
fn a_cell_is_judged_by_its_nearest_wakeup_as_by_a_twin_that_keeps_them_all() {
    let mut tracker = locked(40.0, 0.2);
    let mut random = Random(8);
    let mut all: Vec<f64> = Vec::new();
    for job in 0..300 {
        all.push(40.0 * f64::from(job) + 0.1 * random.normal());
        all.extend((0..5).map(|_| 40.0 * f64::from(job) + 2.0 + 35.0 * random.next()));
    }
    all.sort_by(f64::total_cmp);
    told(&mut tracker, all.iter().copied());
    // The line of least squares through the nearest wakeup to each of the last 32 beats.
    let points: Vec<(f64, f64)> = (268..300)
        .map(|job| {
            let beat = 40.0 * f64::from(job);
            let distance = |at: &f64| (at - beat).abs();
            let nearest = all
                .iter()
                .min_by(|a, b| distance(a).total_cmp(&distance(b)));
            (f64::from(job), *nearest.unwrap())
        })
        .collect();
    let count = points.len() as f64;
    let mean_x = points.iter().map(|p| p.0).sum::<f64>() / count;
    let mean_y = points.iter().map(|p| p.1).sum::<f64>() / count;
    let slope = points
        .iter()
        .map(|p| (p.0 - mean_x) * (p.1 - mean_y))
        .sum::<f64>()
        / points.iter().map(|p| (p.0 - mean_x).powi(2)).sum::<f64>();
    let line_at_end = mean_y + slope * (299.0 - mean_x);
    assert!(
        off(&tracker, line_at_end) < 0.1,
        "{}",
        off(&tracker, line_at_end)
    );
    assert!((tracker.rhythm().period.as_ms_f64() - slope).abs() < 0.02);
}

#[test]
fn no_period_and_no_order_make_it_fail() {
    assert_eq!(locked(0.0, 0.0).hear(&burst(1.0, 1.0)), Beat::Lost);
    let mut tracker = locked(40.0, f64::NAN);
    for at in [5.0, -900.0, 1e12, -1e5, 3.0] {
        tracker.hear(&burst(at, 1e15));
    }
    tracker.hear(&Burst {
        woke: Instant::from_ns(u64::MAX),
        ..burst(0.0, 0.0)
    });
    tracker.hear(&Burst {
        woke: Instant::ZERO,
        ..burst(0.0, 0.0)
    });
    assert!(tracker.rhythm().period > Span::ZERO);
}
