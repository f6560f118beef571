use std::collections::BTreeMap;

use crate::analysed::{analysed, is_period};
use crate::made_up::{self, periodic::Periodic};
use crate::synthetic::{Random, burst};
use onbeat_infer::period::{Analyser, AnalyserConfig};
use onbeat_model::{Instant, Span};

#[test]
fn a_plain_timer_is_found_with_its_period_and_phase() {
    for period_us in [
        500, 1_000, 3_505, 8_220, 20_000, 33_333, 40_000, 100_000, 999_999,
    ] {
        let period = f64::from(period_us) * 1e3;
        let bursts: Vec<_> = (0..10)
            .map(|k| burst(7e9 + f64::from(k) * period, 1e5))
            .collect();
        let rhythms = analysed(bursts.clone());
        let rhythm = rhythms.first().expect("a rhythm");
        assert!(
            (rhythm.period.as_ns() as f64 / period - 1.0).abs() < 1e-5,
            "{rhythm:?}"
        );
        for burst in bursts {
            let (_, late) = rhythm.nearest_release(burst.woke);
            assert!(late.unsigned_abs() < 2_000, "{period_us} us: {rhythm:?}");
        }
        assert!(rhythm.confidence > 0.99);
    }
}

#[test]
fn five_bursts_are_too_few_to_tell() {
    assert!(analysed((0..5).map(|k| burst(f64::from(k) * 20e6, 1e5)).collect()).is_empty());
}

#[test]
fn a_timer_is_found_though_it_is_late_leaves_jobs_out_or_wakes_more_often() {
    type Kind = (usize, fn(&mut Random, Periodic) -> Periodic);
    let kinds: [Kind; 5] = [
        (500, |random, timer| Periodic {
            releases: 12,
            jitter: random.between(0.0, 0.02),
            ..timer
        }),
        (490, |random, timer| Periodic {
            jitter: random.between(0.0, 0.2),
            ..timer
        }),
        (495, |random, timer| Periodic {
            missing: random.between(0.0, 0.3),
            ..timer
        }),
        (495, |random, timer| Periodic {
            spurious: random.between(0.0, 0.5),
            ..timer
        }),
        (490, |random, timer| Periodic {
            wakeups: 1 + (random.even() * 4.0) as u32,
            ..timer
        }),
    ];
    for (least, kind) in kinds {
        let count = (0..500).filter(|&seed| {
            let mut random = Random::new(seed);
            let timer = Periodic {
                period_ns: random.ratio_between(0.5e6, 1e9),
                jitter: 0.02,
                ..Periodic::PLAIN
            };
            let thread = kind(&mut random, timer);
            is_period(
                analysed(thread.bursts(&mut random)).first(),
                thread.period_ns,
            )
        });
        let count = count.count();
        assert!(count >= least, "{count} of 500, not {least}");
    }
}

#[test]
fn of_each_kind_with_a_rhythm_nearly_all_have_theirs() {
    let mut right = BTreeMap::<_, u64>::new();
    for train in made_up::trains(0, 40) {
        let Some(period_ns) = train.period_ns else {
            continue;
        };
        let found = analysed(train.bursts);
        let is_right = found
            .iter()
            .any(|rhythm| is_period(Some(rhythm), period_ns));
        *right.entry(train.kind).or_default() += u64::from(is_right);
    }
    println!("{right:?}");
    for (kind, right) in right {
        assert!(right >= 35, "{kind}: {right} of 40");
    }
}

#[test]
fn two_timers_in_one_thread_are_both_found() {
    let mut count = 0;
    for (one, other) in [
        (20e6, 33.333e6),
        (7e6, 16.667e6),
        (10e6, 23.22e6),
        (5.3e6, 8.9e6),
    ] {
        for seed in 0..20 {
            let mut random = Random::new(seed);
            let mut timer = |period_ns| Periodic::for_a_second(period_ns).bursts(&mut random);
            let bursts = [timer(one), timer(other)].concat();
            let rhythms = analysed(bursts);
            let has = |period| rhythms.iter().any(|r| is_period(Some(r), period));
            count += u32::from(has(one) && has(other));
        }
    }
    // Where the two happen to wake within half a millisecond of each other again and again, the
    // second can stay hidden.
    assert!(count >= 78, "{count} of 80");
}

#[test]
fn a_thread_that_polls_every_millisecond_has_the_rhythm_of_its_rare_and_long_work() {
    // A game: it looks every millisecond whether the next frame is due, 28.57 ms after the one
    // before, and computes that for 3 ms. It may wait for a CPU meanwhile.
    for waits in [0.0, 0.5e6] {
        let mut bursts = Vec::new();
        let (mut now, mut due) = (1e9, 1e9);
        while now < 2e9 {
            let work = now >= due;
            let executed = if work { 3e6 } else { 2e4 };
            let mut poll = timed(burst(now, executed));
            if work {
                poll.blocked = poll.blocked + Span::from_ns(waits as u64);
                due += 28.57e6;
            }
            bursts.push(poll);
            now += executed + waits + 1.06e6 + 1e3 * f64::from(bursts.len() as u32 * 7 % 13);
        }
        let rhythms = analysed(bursts);
        assert!(is_period(rhythms.first(), 28.57e6), "{rhythms:?}");
    }
}

fn timed(burst: onbeat_model::Burst) -> onbeat_model::Burst {
    onbeat_model::Burst {
        expiry: Some(burst.woke - Span::from_us(10)),
        ..burst
    }
}

#[test]
fn a_server_that_looks_after_itself_every_100_ms_has_no_rhythm() {
    for seed in 0..20 {
        let mut random = Random::new(seed);
        let looks = (0..50).map(|k| timed(burst(1e9 + f64::from(k) * 1e8, 2e4)));
        let mut bursts: Vec<_> = looks.collect();
        let mut now = 1e9;
        while now < 6e9 {
            now += 2e7 * random.exponential();
            bursts.push(burst(now, 1e6 * random.exponential()));
        }
        let rhythms = analysed(bursts);
        assert!(rhythms.is_empty(), "{seed}: {rhythms:?}");
    }
}

#[test]
fn who_waits_for_one_that_runs_at_the_ticks_has_no_rhythm() {
    // 250 Hz; the display server, 7, answers at two ticks of three.
    let found = |waker, after_ns: f64| {
        let mut random = Random::new(3);
        let ticks: Vec<_> = (1000..1250).filter(|_| random.chance(0.7)).collect();
        let burst = |tick: i32| onbeat_model::Burst {
            waker,
            ..burst(f64::from(tick) * 4e6 + after_ns + random.even() * 5e4, 4e4)
        };
        analysed(ticks.into_iter().map(burst).collect())
    };
    assert!(found(7, 7e4).is_empty(), "{:?}", found(7, 7e4));
    for (waker, after_ns) in [(0, 7e4), (7, 1e6)] {
        assert!(is_period(found(waker, after_ns).first(), 4e6), "{waker}");
    }
}

#[test]
fn no_bursts_and_no_configuration_make_it_fail() {
    let most = u64::MAX as f64;
    let config = |false_alarm_rate, window, capacity| AnalyserConfig {
        false_alarm_rate,
        window,
        capacity,
    };
    let configs = [
        AnalyserConfig::default(),
        config(0.0, Span::MAX, 100_000),
        config(f64::NAN, Span::MAX, 300),
        config(2.0, Span::ZERO, 0),
    ];
    let mut random = Random::new(6);
    for config in configs {
        let mut analyser = Analyser::new(config);
        assert_eq!(analyser.analyse(Instant::ZERO), []);
        for scale in [0.0, 1.0, 1e3, 1e9, most / 400.0] {
            for pause in [0.0, most / 2.0] {
                let mut now = 0.0;
                analyser.clear();
                for i in 0..400 {
                    now += scale * random.even().round() + if i == 200 { pause } else { 0.0 };
                    analyser.hear(&burst(now, scale));
                }
                for rhythm in analyser.analyse(Instant::from_ns(u64::MAX)) {
                    assert!(rhythm.period > Span::from_us(490), "{rhythm:?}");
                    assert!(rhythm.period < Span::from_ms(1020), "{rhythm:?}");
                }
            }
        }
    }
}

#[test]
fn a_burst_out_of_order_is_left_aside() {
    let mut bursts: Vec<_> = (0..20)
        .map(|k| burst(1e9 + f64::from(k) * 20e6, 1e5))
        .collect();
    let mut analyser = Analyser::new(AnalyserConfig::default());
    bursts.insert(10, burst(0.0, 1e5));
    for burst in &bursts {
        analyser.hear(burst);
    }
    assert_eq!(analyser.bursts().count(), 20);
    assert!(is_period(
        analyser.analyse(bursts[20].blocked).first(),
        20e6
    ));
    analyser.clear();
    assert_eq!(analyser.bursts().count(), 0);
}

/// 30,000 wakeups within a reach of each other: all pairs of them would be a matter of half a
/// minute.
#[test]
fn a_slow_rhythm_after_a_dense_stretch_is_found_at_a_cost_in_proportion_to_the_wakeups() {
    let mut random = Random::new(9);
    let mut analyser = Analyser::new(AnalyserConfig {
        window: Span::from_secs(3600),
        capacity: usize::MAX,
        ..AnalyserConfig::default()
    });
    let mut now = 1e9;
    for _ in 0..30_000 {
        now += 4e4 * random.even();
        analyser.hear(&burst(now, 1e4));
    }
    for _ in 0..150 {
        now += 5e8 + 1e6 * random.even();
        analyser.hear(&burst(now, 1e4));
    }
    let found = analyser.analyse(Instant::from_ns(now as u64));
    assert!(is_period(found.first(), 5.005e8), "{found:?}");
}
