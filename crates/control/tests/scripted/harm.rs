//! Threads that wait longer with a reservation than without it.

use std::cell::Cell;

use onbeat_control::{Entry, Settings, What, Why};
use onbeat_model::{Instant, Span};

use crate::kernel::{Kernel, Waits};
use crate::world::{Noise, Ran, Script, at_ms, ms, play};

const WORKER: u32 = 8;

/// A job of 8 ms each 40 ms, which waits for a CPU for that long on average; the time follows an
/// exponential distribution.
fn waiting(seed: u64, until: u64, mean: impl Fn(bool, Instant) -> Span + 'static) -> Ran {
    let mut script = Script::default();
    script.tracked(WORKER, "worker", at_ms(0));
    script.periodic(WORKER, ms(40), (at_ms(0), at_ms(until)), |_| ms(8));
    play(script, kernel(seed, mean), settings())
}

fn kernel(seed: u64, mean: impl Fn(bool, Instant) -> Span + 'static) -> Kernel {
    let noise = Cell::new(Noise(seed));
    let waits = Waits::new(move |is_held, woke| {
        let mut next = noise.get();
        let even = next.up_to(ms(1000)).ratio(ms(1000));
        noise.set(next);
        mean(is_held, woke).scale(-(1.0 - even).ln()).min(ms(25))
    });
    Kernel {
        waits: Some(waits),
        ..Kernel::with_cpus(2)
    }
}

fn settings() -> Settings {
    Settings {
        means: onbeat_control::AllowedMeans {
            raises: true,
            ..Default::default()
        },
        ..Settings::default()
    }
}

/// When it went without its reservation, and for how long: without a time, for a trial.
fn went_without(ran: &Ran) -> Vec<(Instant, Option<Span>)> {
    let pause = |entry: &Entry| match entry.why {
        Why::Compared { .. } => Some((entry.at, None)),
        Why::WaitsLonger { pause, .. } => Some((entry.at, Some(pause))),
        _ => None,
    };
    ran.of(WORKER).into_iter().filter_map(pause).collect()
}

fn verdicts(ran: &Ran) -> usize {
    let all = went_without(ran);
    all.iter().filter(|(_, pause)| pause.is_some()).count()
}

#[test]
fn a_thread_that_waits_longer_with_its_reservation_goes_without_and_tries_ever_more_rarely() {
    let ran = waiting(1, 200_000, |is_held, _| if is_held { ms(9) } else { ms(1) });
    let all = went_without(&ran);
    let pauses: Vec<_> = all.iter().map(|&(_, pause)| pause).collect();
    let pause = |s| Some(Span::from_secs(s));
    assert_eq!(pauses, [None, pause(40), pause(80), pause(160)], "{all:?}");
    let (first, stopped) = (all[0].0, all[1].0);
    assert!(first <= at_ms(6000), "{first:?}");
    assert!(stopped <= first + ms(3500), "{stopped:?}");
    // The harm ends, and is not tried again before the pause is over.
    let again = ran.reserves(WORKER).into_iter().map(|(at, _)| at);
    let again = again.filter(|&at| at > stopped).min();
    let again = again.expect("it is tried again");
    assert!((stopped + ms(40_000)..stopped + ms(40_100)).contains(&again));
    let told = ran
        .of(WORKER)
        .into_iter()
        .filter(|entry| entry.at == stopped);
    let told: Vec<_> = told.map(|entry| entry.what).collect();
    assert_eq!(told, [What::Released]);
}

/// Of 60 runs of 60 s, the number of trials and of those with a wrong verdict.
fn trials(mean: impl Fn(u64, Instant) -> Span + Copy + 'static) -> (usize, usize) {
    let runs = (0..60).map(|seed| waiting(seed, 60_000, move |_, woke| mean(seed, woke)));
    let counts = runs.map(|ran| {
        let (all, wrong) = (went_without(&ran).len(), verdicts(&ran));
        assert!(all - wrong <= 3, "a trial every 20 s and more");
        (all - wrong, wrong)
    });
    counts.fold((0, 0), |sum, run| (sum.0 + run.0, sum.1 + run.1))
}

#[test]
fn a_thread_that_waits_longer_because_the_load_rises_keeps_its_reservation() {
    // It rises some time after the reservation has begun.
    let (trials, wrong) = trials(|seed, woke| {
        if woke < at_ms(500 + seed * 97) {
            ms(1)
        } else {
            ms(9)
        }
    });
    assert!(trials >= 30, "{trials}");
    assert_eq!(wrong, 0, "of {trials}");
}

#[test]
fn a_thread_that_waits_as_long_with_its_reservation_as_without_keeps_it() {
    let (trials, wrong) = trials(|_, _| ms(5));
    assert!(trials >= 1, "{trials}");
    assert_eq!(wrong, 0, "of {trials}");
}

#[test]
fn a_thread_with_another_period_is_reserved_for_at_once_though_the_former_did_it_harm() {
    let mut script = Script::default();
    script.tracked(WORKER, "worker", at_ms(0));
    script.periodic(WORKER, ms(40), (at_ms(0), at_ms(15_000)), |_| ms(8));
    script.periodic(WORKER, ms(25), (at_ms(15_000), at_ms(25_000)), |_| ms(5));
    let harms = |is_held, woke| {
        if is_held && woke < at_ms(15_000) {
            ms(9)
        } else {
            ms(1)
        }
    };
    let ran = play(script, kernel(1, harms), settings());
    let stopped = went_without(&ran).last().expect("it goes without").0;
    let again = ran.reserves(WORKER).into_iter().map(|(at, _)| at);
    let again = again.filter(|&at| at > stopped).min();
    let again = again.expect("it is reserved for");
    assert!((at_ms(15_000)..at_ms(18_000)).contains(&again), "{again:?}");
}
