//! cpufreq's files, as they should be and otherwise, and the way back.

mod tree;
mod way_back;

use onbeat_act::cpufreq::{CpufreqError, probe};
use onbeat_model::{Refusal, Speed, Support};

use tree::{Fake, mhz};

fn speeds_of(fake: &Fake) -> Vec<Speed> {
    let ladder = fake.cpufreq().unwrap().speeds().ladder;
    ladder.speeds().collect()
}

#[test]
fn what_the_administrator_does_not_allow_is_no_speed() {
    let fake = Fake::laptop();
    fake.write(0, "scaling_min_freq", "500000");
    fake.write(0, "scaling_max_freq", "799999");
    assert_eq!(speeds_of(&fake), [500, 600, 700].map(mhz));
}

#[test]
fn without_a_list_there_is_a_speed_every_100_mhz() {
    let fake = Fake::laptop();
    std::fs::remove_file(fake.path(0, "scaling_available_frequencies")).unwrap();
    fake.write(0, "cpuinfo_min_freq", "720000");
    assert_eq!(speeds_of(&fake), [720, 800, 900, 1000].map(mhz));
}

#[test]
fn a_governor_of_the_kernel_gets_limits_with_one_speed_between_them() {
    let fake = Fake::laptop();
    let mut cpufreq = fake.cpufreq().unwrap();
    for speed in [300, 800, 500, 1000] {
        cpufreq.set(mhz(speed)).unwrap();
        assert_eq!(fake.limits(0), [speed, speed]);
        assert_eq!(cpufreq.speeds().present, mhz(speed));
    }
    assert_eq!(fake.read(0, "scaling_governor"), "schedutil");
}

#[test]
fn domains_of_different_speeds_go_together() {
    let fake = Fake::laptop();
    fake.add(4, "2000000 1500000 1000000");
    let mut cpufreq = fake.cpufreq().unwrap();
    assert_eq!(cpufreq.speeds().ladder.highest(), mhz(2000));
    cpufreq.set(mhz(1500)).unwrap();
    assert_eq!((fake.limits(0), fake.limits(4)), ([800, 800], [1500, 1500]));
    cpufreq.set(mhz(1000)).unwrap();
    assert_eq!((fake.limits(0), fake.limits(4)), ([500, 500], [1000, 1000]));
}

#[test]
fn if_one_domain_refuses_the_others_have_what_they_had() {
    let fake = Fake::laptop();
    fake.add(4, "1000000 800000");
    let mut cpufreq = fake.cpufreq().unwrap();
    cpufreq.set(mhz(1000)).unwrap();
    std::fs::remove_file(fake.path(4, "scaling_max_freq")).unwrap();
    let refusal = cpufreq.set(mhz(800)).unwrap_err();
    assert!(refusal.to_string().contains("policy4"), "{refusal}");
    assert_eq!(fake.limits(0), [1000, 1000]);
    assert_eq!(cpufreq.speeds().present, mhz(1000));
}

#[test]
fn a_domain_that_somebody_else_changed_is_theirs() {
    let fake = Fake::laptop();
    let mut cpufreq = fake.cpufreq().unwrap();
    cpufreq.set(mhz(800)).unwrap();
    fake.write(0, "scaling_governor", "performance");
    let refusal = cpufreq.set(mhz(600)).unwrap_err();
    let Refusal::TakenOver { now } = &refusal else {
        panic!("{refusal}");
    };
    assert!(now.contains("performance"), "{now}");
    fake.write(0, "scaling_governor", "schedutil");
    assert!(cpufreq.set(mhz(600)).is_err(), "and stays theirs");
    drop(cpufreq);
    assert_eq!(fake.limits(0), [800, 800]);
    assert_eq!(fake.state_files(), 0);
}

#[test]
fn a_machine_without_speeds_to_choose_from_is_told_so() {
    let fake = Fake::laptop();
    for file in ["scaling_min_freq", "scaling_max_freq"] {
        fake.write(0, file, "600000");
    }
    let error = fake.cpufreq().unwrap_err();
    assert!(matches!(error, CpufreqError::OneSpeed(speed) if speed == mhz(600)));
    std::fs::remove_dir_all(fake.path(0, "")).unwrap();
    assert!(matches!(fake.cpufreq(), Err(CpufreqError::NoCpufreq)));
}

#[test]
fn the_doctor_says_what_there_is_and_how_it_would_be_asked() {
    let fake = Fake::laptop();
    let feature = probe(&fake.tree());
    assert_eq!(feature.standing, Support::Full);
    assert_eq!(
        feature.detail,
        "acpi-cpufreq (1 domain): 6 speeds from 300 MHz to 1000 MHz; governor schedutil, asked through its limits"
    );
    fake.write(0, "scaling_available_frequencies", "fast slow");
    let feature = probe(&fake.tree());
    assert_eq!(feature.standing, Support::Partial);
    assert!(feature.detail.contains("'fast slow'"), "{}", feature.detail);
    std::fs::remove_dir_all(fake.path(0, "")).unwrap();
    let feature = probe(&fake.tree());
    assert!(
        feature.detail.starts_with("no cpufreq"),
        "{}",
        feature.detail
    );
}

#[test]
fn an_error_names_the_file_and_what_it_says() {
    for (file, text) in [
        ("scaling_min_freq", "fast"),
        ("scaling_max_freq", "0"),
        ("scaling_max_freq", "-1"),
        ("scaling_min_freq", "99999999999999999999999"),
        ("scaling_available_frequencies", "1000000 fast"),
        ("scaling_governor", "two words"),
        ("scaling_governor", ""),
        ("scaling_governor", "a_name_longer_than_any_of_the_kernel"),
    ] {
        let fake = Fake::laptop();
        fake.write(0, file, text);
        let error = fake.cpufreq().unwrap_err().to_string();
        assert!(error.contains(file), "{error}");
        assert!(error.contains(&format!("'{text}'")), "{error}");
    }
}

#[test]
fn limits_without_a_speed_between_them_are_an_error() {
    let fake = Fake::laptop();
    fake.write(0, "scaling_min_freq", "900000");
    fake.write(0, "scaling_max_freq", "950000");
    let error = fake.cpufreq().unwrap_err().to_string();
    assert!(error.contains("'900 MHz to 950 MHz'"), "{error}");
}
