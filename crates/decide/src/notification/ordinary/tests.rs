//! The honest and the cheaters, on a CPU that is shared by the kernel's weights.

use onbeat_model::Span;

use super::*;

const STEP: Span = Span::from_us(500);

/// The behaviour of a thread: in each step, whether it wants to run, given the time and what it has
/// executed.
type Will = Box<dyn FnMut(Instant, Span) -> bool>;

struct Thread {
    will: Will,
    cries: bool,
    judged: Ordinary,
    executed: Span,
    ready_since: Option<Instant>,
}

impl Thread {
    fn new(cries: bool, will: impl FnMut(Instant, Span) -> bool + 'static) -> Self {
        Self {
            will: Box::new(will),
            cries,
            judged: Ordinary::default(),
            executed: Span::ZERO,
            ready_since: None,
        }
    }

    /// Computes without a pause.
    fn hog(cries: bool) -> Self {
        Self::new(cries, |_, _| true)
    }

    /// Wants to run for the share of each 40 ms, or for longer if it did not get it by then.
    fn periodic(share: f64, cries: bool) -> Self {
        let period = Span::from_ms(40);
        let mut due = (Instant::ZERO, Span::ZERO);
        Self::new(cries, move |now, executed| {
            if executed < due.1 {
                return true;
            }
            let released = now >= due.0 + period;
            if released {
                due = (now, executed + period.scale(share));
            }
            released
        })
    }
}

/// The shares of one CPU that threads get in the time from the first of these seconds to the
/// second, each at the nice level that it deserves.
fn shares(threads: &mut [Thread], (from, to): (u64, u64)) -> Vec<f64> {
    let seconds = to - from;
    let mut now = Instant::ZERO + Span::from_secs(from);
    let before: Vec<Span> = threads.iter().map(|thread| thread.executed).collect();
    let end = now + Span::from_secs(seconds);
    while now < end {
        let deserved = threads.iter().map(|thread| thread.judged.levels()).sum();
        let diluted = dilution(deserved, 1);
        let wants: Vec<bool> = threads
            .iter_mut()
            .map(|thread| (thread.will)(now, thread.executed))
            .collect();
        let weight = |thread: &Thread| {
            let levels = thread.judged.boost(diluted).map_or(0, |boost| boost.levels);
            1.25_f64.powi(i32::from(levels))
        };
        let all: f64 = threads
            .iter()
            .zip(&wants)
            .filter(|(_, wants)| **wants)
            .map(|(thread, _)| weight(thread))
            .sum();
        now = now + STEP;
        for (thread, wants) in threads.iter_mut().zip(wants) {
            if wants {
                let since = *thread.ready_since.get_or_insert(now - STEP);
                thread.executed += STEP.scale(weight(thread) / all);
                thread.judged.ready(since, now);
            } else {
                thread.ready_since = None;
                thread.judged.asleep(now);
            }
            if thread.cries {
                thread.judged.missed();
            }
        }
    }
    let took = |(thread, before): (&Thread, Span)| {
        (thread.executed - before).as_secs_f64() / seconds as f64
    };
    threads.iter().zip(before).map(took).collect()
}

#[test]
fn a_flood_of_notifications_by_who_never_blocks_gives_nothing() {
    let got = shares(&mut [Thread::hog(true), Thread::hog(false)], (1, 6));
    assert!((got[0] - 0.5).abs() < 1e-6, "{got:?}");
}

#[test]
fn a_million_notifications_at_once_are_worth_no_more_than_a_few() {
    let mut judged = Ordinary::default();
    judged.ready(
        Instant::ZERO + Span::from_ms(1),
        Instant::ZERO + Span::from_ms(2),
    );
    judged.asleep(Instant::ZERO + Span::from_secs(10));
    for _ in 0..6 {
        judged.missed();
    }
    let few = judged;
    for _ in 0..1_000_000 {
        judged.missed();
    }
    assert_eq!(judged, few);
    assert_eq!(judged.boost(1.0).map(|boost| boost.levels), Some(5));
}

#[test]
fn a_burst_that_outlasts_the_memory_of_all_sleep_leaves_no_boost() {
    let at = |s| Instant::ZERO + Span::from_secs(s);
    let mut judged = Ordinary::default();
    judged.ready(at(1), at(1) + Span::from_ms(1));
    judged.asleep(at(10));
    judged.missed();
    assert!(judged.boost(1.0).is_some());
    judged.ready(at(10), at(30));
    assert!(judged.levels() < 0.5, "{}", judged.levels());
}

#[test]
fn no_cheater_gets_more_of_the_cpu_whatever_share_of_the_time_it_sleeps() {
    for sleeps in [1, 2, 3, 5, 8] {
        for period_ms in [10, 40, 200, 2000] {
            let period = Span::from_ms(period_ms);
            let awake = period.scale(1.0 - f64::from(sleeps) / 10.0);
            let cheater = Thread::new(true, move |now, _| {
                now.since(Instant::ZERO).as_ns() % period.as_ns() < awake.as_ns()
            });
            let got = shares(&mut [cheater, Thread::hog(false)], (1, 9));
            // A half is its fair share. Its gain after a long sleep is less than what it slept
            // away.
            assert!(
                got[0] < 0.505,
                "asleep for {sleeps} tenths of {period}: {got:?}"
            );
        }
    }
}

#[test]
fn who_computes_after_it_was_honest_is_where_it_began_within_two_seconds() {
    // Fig. 7 (b), on a CPU that two CPU-bound programs share with it.
    let mut threads = [
        Thread::periodic(0.25, true),
        Thread::hog(false),
        Thread::hog(false),
    ];
    let honest = shares(&mut threads, (1, 6));
    assert!((honest[0] - 0.25).abs() < 0.01, "{honest:?}");
    assert!(threads[0].judged.boost(1.0).is_some());
    threads[0].will = Box::new(|_, _| true);
    let first = shares(&mut threads, (6, 8));
    let later = shares(&mut threads, (8, 13));
    assert!(first[0] < 0.37, "{first:?}");
    assert!((later[0] - 1.0 / 3.0).abs() < 0.001, "{later:?}");
}

#[test]
fn an_honest_thread_within_its_share_is_done_sooner() {
    // Beside three programs that compute, 22% in each 40 ms is late at equal weights now and then.
    let response = |cries| {
        let mut threads = [
            Thread::periodic(0.22, cries),
            Thread::hog(false),
            Thread::hog(false),
            Thread::hog(false),
        ];
        shares(&mut threads, (1, 6));
        threads[0].judged.block_ratio
    };
    let (unheard, heard) = (response(false), response(true));
    assert!(
        heard > unheard + 0.1,
        "asleep for {unheard} of the time, then for {heard}"
    );
}

#[test]
fn a_boost_is_there_again_once_a_long_job_is_over() {
    let ms = |ms| Instant::ZERO + Span::from_ms(ms);
    let mut judged = Ordinary::default();
    judged.ready(ms(1), ms(2));
    judged.asleep(ms(5000));
    (0..5).for_each(|_| judged.missed());
    let levels = |judged: &Ordinary| judged.boost(1.0).map(|boost| boost.levels);
    assert_eq!(levels(&judged), Some(5));
    judged.ready(ms(5000), ms(6000));
    assert_eq!(levels(&judged), Some(1), "it computed for 1 s");
    judged.asleep(ms(7500));
    assert!(levels(&judged) >= Some(3), "{judged:?}");
}

#[test]
fn many_cheaters_together_share_what_one_could_have() {
    let cheaters = |cry: bool, count: u32| {
        let mut threads: Vec<Thread> = (0..count)
            .map(|_| Thread::periodic(0.5 / f64::from(count), cry))
            .collect();
        threads.push(Thread::hog(false));
        shares(&mut threads, (1, 6)).pop().unwrap()
    };
    for count in [2, 8, 40] {
        let (silent, crying) = (cheaters(false, count), cheaters(true, count));
        assert!(
            silent - crying < 0.103,
            "{count}: {silent} without, {crying} with"
        );
    }
    assert!((dilution(50.0, 1) - 0.1).abs() < 1e-12);
    assert!((dilution(5.0, 1) - 1.0).abs() < 1e-12);
    assert!((dilution(50.0, 4) - 0.4).abs() < 1e-12);
}

#[test]
fn a_boost_ends_by_itself_and_sooner_for_who_sleeps_less() {
    let lasts = |ready: u64| {
        let mut judged = Ordinary::default();
        let mut now = Instant::ZERO + Span::from_secs(1);
        let mut told = 0;
        for n in 0.. {
            judged.ready(now, now + Span::from_ms(ready));
            now = now + Span::from_ms(40);
            judged.asleep(now);
            if n < 100 {
                judged.missed();
                told = n;
            } else if judged.boost(1.0).is_none() {
                return n - told;
            }
        }
        0
    };
    let (sleepy, busy) = (lasts(4), lasts(30));
    assert!(busy < sleepy, "{busy} and {sleepy} jobs");
    assert!(sleepy * 40 < 120_000, "{sleepy} jobs");
}

#[test]
fn whatever_comes_in_whatever_order_a_boost_is_within_bounds() {
    let mut judged = Ordinary::default();
    let mut x: u64 = 5;
    for _ in 0..100_000 {
        x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let at = |n: u64| Instant::from_ns(n >> (x >> 60));
        match x >> 58 & 3 {
            0 => judged.asleep(at(x)),
            1 => judged.ready(at(x), at(x.rotate_left(17))),
            _ => judged.missed(),
        }
        assert!((0.0..=1.0).contains(&judged.block_ratio), "{judged:?}");
        assert!((0.0..=MOST_LEVELS).contains(&judged.levels), "{judged:?}");
    }
}
