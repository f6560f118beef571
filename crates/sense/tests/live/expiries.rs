use onbeat_model::{Burst, Instant, Span};
use onbeat_sense::bpf::{BpfOptions, BpfSensor, tells_expiries};

use crate::role::{Role, bursts_of, eventually, heard, sensors};

/// As roles.c has it.
const SLEEPS: usize = 23;
const SLEEP: Span = Span::from_ns(2_000_003);

/// A sensor for each kind of hooks; none where the kernel's timers are not found.
fn sensors_of_expiries() -> impl Iterator<Item = BpfSensor> {
    let tells = tells_expiries() || std::env::var_os("CI").is_some();
    if !tells {
        println!("skipped: expiries: the kernel's timers were not found");
    }
    let sensors = tells.then(|| sensors(BpfOptions::default()));
    sensors.into_iter().flatten().map(|(_, sensor)| sensor)
}

fn expiries(bursts: &[Burst]) -> Vec<Instant> {
    bursts.iter().filter_map(|burst| burst.expiry).collect()
}

/// Has a role carry out `command` until `enough` of its sleeps are heard: a virtual machine may
/// hide some. Those that are heard are on the grid each time.
fn hears_sleeps(command: u8, enough: usize) {
    for mut sensor in sensors_of_expiries() {
        let mut role = Role::tracked_by(&mut sensor);
        eventually("enough sleeps are heard", || {
            role.ask(command);
            let bursts = bursts_of(&heard(&mut sensor), role.id());
            for pair in bursts.windows(2) {
                assert!(pair[0].blocked <= pair[1].woke, "{pair:?}");
            }
            for burst in bursts.iter().filter(|burst| burst.expiry.is_some()) {
                assert!(burst.expiry <= Some(burst.woke), "{burst:?}");
                assert_eq!(burst.waker, 0, "{burst:?}");
            }
            let expiries = expiries(&bursts);
            for pair in expiries.windows(2) {
                let apart = pair[1].since(pair[0]).as_ns();
                assert!(apart > 0 && apart % SLEEP.as_ns() == 0, "{expiries:?}");
            }
            expiries.len() >= enough
        });
    }
}

#[test]
fn each_absolute_sleep_is_a_burst_whose_expiry_is_what_was_asked_for() {
    hears_sleeps(b'a', SLEEPS);
}

#[test]
fn each_job_of_a_late_thread_that_never_sleeps_is_a_burst_with_its_own_expiry() {
    hears_sleeps(b'o', SLEEPS);
}

/// A thread that the machine stalls for longer than an interval finds the timer expired, and is not
/// woken by it.
#[test]
fn a_timer_with_an_interval_tells_its_grid_whatever_its_clock() {
    hears_sleeps(b'i', 3);
}
