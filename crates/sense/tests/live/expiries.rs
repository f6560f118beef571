//! The expiry of the timer that woke a thread is that for which the thread set it.

use onbeat_model::{Burst, Follow, Instant, Sensor, Span};
use onbeat_sense::bpf::{BpfSensor, Hooks, Options, tells_expiries};

use crate::role::{Role, bursts_of, eventually, heard, sensor};

/// As roles.c has it.
const SLEEPS: usize = 23;
const SLEEP: Span = Span::from_ns(2_000_003);

/// A sensor for each kind of hooks; none where the kernel's timers are not found.
fn sensors() -> impl Iterator<Item = BpfSensor> {
    let tells = tells_expiries() || std::env::var_os("CI").is_some();
    if !tells {
        println!("skipped: expiries: the kernel's timers were not found");
    }
    let hooks = [Hooks::Btf, Hooks::Raw].into_iter().filter(move |_| tells);
    hooks.filter_map(|hooks| {
        sensor(Options {
            hooks,
            ..Options::default()
        })
    })
}

/// What is heard of a role that carries out `command`.
fn bursts(mut sensor: BpfSensor, command: u8) -> Vec<Burst> {
    let mut role = Role::start();
    sensor.track(role.pid(), Follow::Threads).unwrap();
    role.ask(command);
    bursts_of(&heard(&mut sensor), role.id())
}

fn expiries(bursts: &[Burst]) -> Vec<Instant> {
    bursts.iter().filter_map(|burst| burst.expiry).collect()
}

#[test]
fn each_absolute_sleep_is_a_burst_whose_expiry_is_what_was_asked_for() {
    for sensor in sensors() {
        let bursts = bursts(sensor, b'a');
        let expiries = expiries(&bursts);
        assert_eq!(expiries.len(), SLEEPS, "{bursts:?}");
        for pair in expiries.windows(2) {
            assert_eq!(pair[1].since(pair[0]), SLEEP);
        }
        for burst in bursts.iter().filter(|burst| burst.expiry.is_some()) {
            assert!(burst.expiry <= Some(burst.woke), "{burst:?}");
            assert_eq!(burst.waker, 0, "{burst:?}");
        }
    }
}

#[test]
fn each_job_of_a_late_thread_that_never_sleeps_is_a_burst_with_its_own_expiry() {
    for sensor in sensors() {
        let bursts = bursts(sensor, b'o');
        let expiries = expiries(&bursts);
        assert_eq!(expiries.len(), SLEEPS, "{bursts:?}");
        for pair in expiries.windows(2) {
            assert_eq!(pair[1].since(pair[0]), SLEEP);
        }
        for pair in bursts.windows(2) {
            assert!(pair[0].blocked <= pair[1].woke, "{pair:?}");
        }
    }
}

/// A thread that the machine stalls for longer than an interval finds the timer expired, and is not
/// woken by it.
#[test]
fn a_timer_with_an_interval_tells_its_grid_whatever_its_clock() {
    for mut sensor in sensors() {
        let mut role = Role::start();
        sensor.track(role.pid(), Follow::Threads).unwrap();
        eventually("a timer wakes the thread three times", || {
            role.ask(b'i');
            let expiries = expiries(&bursts_of(&heard(&mut sensor), role.id()));
            for pair in expiries.windows(2) {
                let apart = pair[1].since(pair[0]).as_ns();
                assert!(apart > 0 && apart % SLEEP.as_ns() == 0, "{expiries:?}");
            }
            expiries.len() >= 3
        });
    }
}
