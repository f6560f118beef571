use onbeat_act::cpufreq::Tree;
use onbeat_act::restore::{Outcome, RestoreReport, restore_in};

use crate::tree::{Fake, mhz};

/// As if the process that set the speed had been killed: its state file stays.
fn crash_at(fake: &Fake, speeds: &[u64]) {
    let mut cpufreq = fake.cpufreq().unwrap();
    for &speed in speeds {
        cpufreq.set(mhz(speed)).unwrap();
    }
    std::mem::forget(cpufreq);
    assert_eq!(fake.state_files(), 1);
}

fn restore(fake: &Fake) -> RestoreReport {
    // Forced, for the owner is this process, and lives.
    restore_in(&fake.state(), &fake.tree(), true).unwrap()
}

#[test]
fn at_the_end_everything_is_as_before() {
    let fake = Fake::laptop();
    fake.write(0, "scaling_min_freq", "500000");
    let mut cpufreq = fake.cpufreq().unwrap();
    cpufreq.set(mhz(1000)).unwrap();
    cpufreq.set(mhz(600)).unwrap();
    assert_eq!(fake.state_files(), 1);
    drop(cpufreq);
    assert_eq!(fake.limits(0), [500, 1000]);
    assert_eq!(fake.state_files(), 0);
}

#[test]
fn after_a_crash_restore_puts_the_userspace_governors_speed_back() {
    let fake = Fake::laptop();
    fake.write(0, "scaling_governor", "userspace");
    fake.write(0, "scaling_setspeed", "800000");
    crash_at(&fake, &[1000, 300]);
    assert_eq!(restore(&fake).domains, [(0, Outcome::Restored)]);
    assert_eq!(fake.read(0, "scaling_setspeed"), "800000");
    assert_eq!(fake.read(0, "scaling_governor"), "userspace");
}

#[test]
fn a_change_that_was_half_done_is_undone() {
    let fake = Fake::laptop();
    crash_at(&fake, &[1000, 600]);
    fake.write(0, "scaling_min_freq", "1000000");
    assert_eq!(restore(&fake).domains, [(0, Outcome::Restored)]);
    assert_eq!(fake.limits(0), [300, 1000]);
}

#[test]
fn limits_that_the_kernel_has_not_put_in_force_yet_are_put_back_too() {
    let fake = Fake::laptop();
    crash_at(&fake, &[600]);
    // The old ones are told yet, each with the newline that marks it as not written here.
    fake.write(0, "scaling_min_freq", "300000");
    fake.write(0, "scaling_max_freq", "1000000");
    assert_eq!(restore(&fake).domains, [(0, Outcome::AlreadyBack)]);
    for (file, written) in [
        ("scaling_min_freq", "300000"),
        ("scaling_max_freq", "1000000"),
    ] {
        let found = std::fs::read_to_string(fake.path(0, file)).unwrap();
        assert_eq!(found, written);
    }
}

#[test]
fn what_somebody_else_set_since_the_crash_stays() {
    let fake = Fake::laptop();
    crash_at(&fake, &[600]);
    fake.write(0, "scaling_max_freq", "700000");
    let report = restore(&fake);
    let [(0, Outcome::LeftAlone { now })] = report.domains.as_slice() else {
        panic!("{report:?}");
    };
    assert_eq!(now.max, mhz(700));
    assert_eq!(fake.limits(0), [600, 700]);
    assert_eq!(fake.state_files(), 0);
}

#[test]
fn a_driver_that_was_unloaded_since_left_nothing_to_put_back() {
    let fake = Fake::laptop();
    crash_at(&fake, &[600]);
    let elsewhere = Tree::at(&fake.state());
    let report = restore_in(&fake.state(), &elsewhere, true).unwrap();
    assert_eq!(report.domains, [(0, Outcome::Gone)]);
    assert!(report.is_complete());
}

#[test]
fn what_cannot_be_put_back_is_told_and_tried_again() {
    let fake = Fake::laptop();
    crash_at(&fake, &[600]);
    let min = fake.path(0, "scaling_min_freq");
    std::fs::remove_file(&min).unwrap();
    assert!(!restore(&fake).is_complete());
    assert_eq!(fake.state_files(), 1);
    fake.write(0, "scaling_min_freq", "600000");
    assert!(restore(&fake).is_complete());
    assert_eq!(fake.limits(0), [300, 1000]);
}
