//! Threads with a known rhythm: what the default analyser must say of each.

use crate::analysed::{analysed, is_period};
use crate::made_up::periodic::Periodic;
use crate::synthetic::{Random, burst};
use onbeat_infer::period::{Analyser, AnalyserConfig};
use onbeat_model::{Instant, Span};

/// How many of `count` threads, made by `make` for one seed each, have their period found.
fn found(count: u64, make: impl Fn(&mut Random) -> Periodic) -> u64 {
    (0..count)
        .filter(|&seed| {
            let mut random = Random::new(seed);
            let thread = make(&mut random);
            let rhythms = analysed(thread.bursts(&mut random));
            let right = is_period(rhythms.first(), thread.period_ns);
            if !right {
                eprintln!("seed {seed}: {thread:?}: {rhythms:?}");
            }
            right
        })
        .count() as u64
}

fn any_period(random: &mut Random) -> f64 {
    random.ratio_between(0.5e6, 1e9)
}

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
fn a_timer_of_any_period_with_little_jitter_is_always_found() {
    let count = found(500, |random| Periodic {
        period_ns: any_period(random),
        releases: 12,
        jitter: random.between(0.0, 0.02),
        ..Periodic::PLAIN
    });
    assert_eq!(count, 500);
}

#[test]
fn jitter_up_to_a_tenth_of_the_period_either_way_hides_few() {
    let count = found(500, |random| Periodic {
        period_ns: any_period(random),
        releases: 50,
        jitter: random.between(0.0, 0.2),
        ..Periodic::PLAIN
    });
    assert!(count >= 490, "{count} of 500");
}

#[test]
fn three_jobs_in_ten_may_be_missing() {
    let count = found(500, |random| Periodic {
        period_ns: any_period(random),
        missing: random.between(0.0, 0.3),
        jitter: 0.02,
        ..Periodic::PLAIN
    });
    assert!(count >= 495, "{count} of 500");
}

#[test]
fn wakeups_for_nothing_do_not_hide_it() {
    let count = found(500, |random| Periodic {
        period_ns: any_period(random),
        spurious: random.between(0.0, 0.5),
        jitter: 0.02,
        ..Periodic::PLAIN
    });
    assert!(count >= 495, "{count} of 500");
}

#[test]
fn a_job_of_several_bursts_is_one_job() {
    let count = found(500, |random| Periodic {
        period_ns: any_period(random),
        wakeups: 1 + (random.even() * 4.0) as u32,
        jitter: 0.02,
        ..Periodic::PLAIN
    });
    assert!(count >= 490, "{count} of 500");
}

#[test]
fn everything_at_once_hides_few() {
    let count = found(500, |random| Periodic {
        period_ns: any_period(random),
        releases: 60,
        jitter: random.between(0.0, 0.06),
        missing: random.between(0.0, 0.15),
        spurious: random.between(0.0, 0.3),
        wakeups: (random.even() * 3.0) as u32,
        drift: 1e-4,
    });
    assert!(count >= 475, "{count} of 500");
}

#[test]
fn a_clock_that_drifts_gives_the_period_of_that_clock() {
    let thread = Periodic {
        releases: 400,
        drift: 1e-4,
        ..Periodic::PLAIN
    };
    let rhythms = analysed(thread.bursts(&mut Random::new(1)));
    let period = rhythms.first().expect("a rhythm").period.as_ns() as f64;
    assert!(
        (period / (20e6 * (1.0 - 1e-4)) - 1.0).abs() < 1e-6,
        "{period}"
    );
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
fn a_thread_that_polls_has_the_rhythm_of_its_work() {
    // It looks every 10.1 ms whether the next frame is due, 33.3 ms after the one before.
    let mut bursts = Vec::new();
    let (mut now, mut due) = (1e9, 1e9);
    while now < 3e9 {
        let work = now >= due;
        bursts.push(burst(now, if work { 6e5 } else { 3e4 }));
        if work {
            due += 33.333e6;
        }
        now += 10.12e6 + if work { 6e5 } else { 0.0 };
    }
    let rhythms = analysed(bursts);
    assert!(is_period(rhythms.first(), 33.333e6), "{rhythms:?}");
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

/// The burst, woken by a timer that was to wake it then.
fn timed(burst: onbeat_model::Burst) -> onbeat_model::Burst {
    onbeat_model::Burst {
        expiry: Some(burst.woke - Span::from_us(10)),
        ..burst
    }
}

#[test]
fn a_player_that_talks_to_its_display_has_the_rhythm_of_its_timer() {
    // It plays at a random walk around 25 frames/s, and waits for its display up to 60 times a
    // frame.
    for seed in 0..20 {
        let mut random = Random::new(seed);
        let (mut due, mut bursts) = (1e9, Vec::new());
        for _ in 0..25 {
            bursts.push(timed(burst(due, 1e5)));
            let mut now = due + 1.2e5;
            for _ in 0..(60.0 * random.even()) as u32 {
                now += random.between(5e4, 1.5e5);
                bursts.push(burst(now, 3e4));
                now += 4e4;
            }
            bursts.push(burst(now + 5e4, random.between(4e6, 2e7)));
            due += 40e6 + random.between(-5e5, 5e5);
        }
        let rhythms = analysed(bursts);
        assert!(is_period(rhythms.first(), 40e6), "{seed}: {rhythms:?}");
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
fn jobs_that_sometimes_take_twice_as_long_are_not_the_only_ones() {
    for every in [5, 8, 10] {
        let work = |job: u32| if job.is_multiple_of(every) { 18e6 } else { 9e6 };
        let bursts = (0..50).map(|job| burst(1e9 + f64::from(job) * 40e6, work(job)));
        let rhythms = analysed(bursts.collect());
        assert!(is_period(rhythms.first(), 40e6), "{every}: {rhythms:?}");
    }
}

/// A job in four is missed, and only those of odd number.
#[test]
fn jobs_that_are_missed_in_turn_make_no_longer_period() {
    let mut right = 0;
    for seed in 0..20 {
        let mut random = Random::new(seed);
        let mut bursts = Vec::new();
        for job in 0..100 {
            let jitter = 0.4e6 * random.even();
            if job % 2 == 0 || random.chance(0.5) {
                bursts.push(burst(1e9 + f64::from(job) * 10e6 + jitter, 1e6));
            }
        }
        right += u32::from(is_period(analysed(bursts).first(), 10e6));
    }
    assert!(right >= 18, "{right} of 20");
}

#[test]
fn a_thread_that_does_more_at_each_third_beat_has_the_period_of_all() {
    let mut right = 0;
    for seed in 0..20 {
        let mut random = Random::new(seed);
        let bursts = (0..30)
            .map(|job| {
                let jitter = 0.8e6 * random.even();
                let work = if job % 3 == 0 { 2e6 } else { 4e5 };
                burst(1e9 + f64::from(job) * 40e6 + jitter, work)
            })
            .collect();
        right += u32::from(is_period(analysed(bursts).first(), 40e6));
    }
    assert!(right >= 18, "{right} of 20");
}

#[test]
fn a_timer_that_starts_anew_after_an_overrun_keeps_its_step() {
    let mut random = Random::new(3);
    let mut now = 1e9;
    let bursts: Vec<_> = (0..100)
        .map(|_| {
            now += 8.22e6
                + if random.chance(0.25) {
                    random.even() * 15e6
                } else {
                    0.0
                };
            burst(now + random.even() * 2e4, 2e6)
        })
        .collect();
    let rhythms = analysed(bursts);
    assert!(is_period(rhythms.first(), 8.22e6), "{rhythms:?}");
}

#[test]
fn a_start_without_rhythm_does_not_hide_what_follows() {
    let mut random = Random::new(4);
    let mut now = 1e9;
    let mut bursts = Vec::new();
    for _ in 0..60 {
        now += random.exponential() * 3e6;
        bursts.push(burst(now, 1e6));
    }
    bursts.extend((1..40).map(|k| burst(now + f64::from(k) * 40e6, 4e6)));
    let rhythms = analysed(bursts);
    assert!(is_period(rhythms.first(), 40e6), "{rhythms:?}");
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

/// Bursts of 0.2 ms, the first after one step and each after its step from the one before.
fn after_steps(steps: &[f64]) -> Vec<onbeat_model::Burst> {
    let mut now = 1e9;
    let bursts = steps.iter().map(|step| {
        now += step;
        burst(now, 2e5)
    });
    bursts.collect()
}

#[test]
fn a_clock_is_told_from_the_same_steps_in_another_order() {
    let (mut right, mut alarms) = (0, 0);
    for seed in 0..100 {
        let mut random = Random::new(seed);
        let releases: Vec<f64> = (0..80)
            .map(|k| 20e6 * (f64::from(k) + 0.2 * random.even()))
            .collect();
        let mut steps: Vec<f64> = releases.windows(2).map(|w| w[1] - w[0]).collect();
        right += u32::from(is_period(analysed(after_steps(&steps)).first(), 20e6));
        for i in (1..steps.len()).rev() {
            steps.swap(i, (random.even() * (i + 1) as f64) as usize);
        }
        alarms += u32::from(!analysed(after_steps(&steps)).is_empty());
    }
    assert!(right >= 99, "{right} of 100");
    assert!(alarms <= 5, "{alarms} of 100");
}

#[test]
fn who_sleeps_for_one_time_after_jobs_that_vary_has_the_mean_step_as_period() {
    for seed in 0..20 {
        let mut random = Random::new(seed);
        let mut now = 1e9;
        let mut bursts = Vec::new();
        for _ in 0..100 {
            let work = random.between(1e6, 3e6);
            bursts.push(burst(now, work));
            now += work + 20e6 + random.between(0.0, 5e4);
        }
        let mean = (now - 1e9) / 100.0;
        let rhythms = analysed(bursts);
        let period = rhythms.first().expect("a rhythm").period.as_ns() as f64;
        assert!((period / mean - 1.0).abs() < 0.02, "{period} for {mean}");
    }
}

#[test]
fn an_answer_with_a_tighter_rhythm_is_surer() {
    let timer = analysed(after_steps(&[20e6; 40]));
    // Releases anywhere in a fifth of the period.
    let mut random = Random::new(1);
    let at: Vec<f64> = (0..40)
        .map(|k| 20e6 * (f64::from(k) + 0.2 * random.even()))
        .collect();
    let steps: Vec<f64> = at.windows(2).map(|w| w[1] - w[0]).collect();
    let loose = analysed(after_steps(&steps));
    let confidence = |rhythms: &[onbeat_model::Rhythm]| rhythms.first().map(|r| r.confidence);
    assert!(confidence(&timer) > Some(0.99), "{timer:?}");
    assert!(confidence(&loose).is_some_and(|c| c < 0.97), "{loose:?}");
}
