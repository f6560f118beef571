//! Files with anything in them give an error that names the file, or speeds; never a panic.

use onbeat_act::cpufreq::CpufreqError;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed};

use crate::tree::Fake;

const FILES: [&str; 7] = [
    "scaling_governor",
    "scaling_available_frequencies",
    "cpuinfo_min_freq",
    "cpuinfo_max_freq",
    "scaling_min_freq",
    "scaling_max_freq",
    "scaling_setspeed",
];

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

/// The same cases in every run.
fn config() -> Config {
    Config {
        rng_seed: RngSeed::Fixed(0x6f6e_6265_6174),
        failure_persistence: None,
        cases: 64,
        ..Config::default()
    }
}

fn any_text() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        prop::collection::vec(any::<u8>(), 0..64),
        any::<u64>().prop_map(|number| number.to_string().into_bytes()),
        prop::collection::vec(any::<u32>(), 0..6).prop_map(|numbers| format!("{numbers:?}")
            .replace(['[', ',', ']'], " ")
            .into_bytes()),
        Just(b"userspace\n".to_vec()),
    ]
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn any_bytes_in_any_files_are_speeds_or_an_error(
        contents in prop::collection::vec((0usize..FILES.len(), any_text()), 1..4),
    ) {
        let fake = Fake::laptop();
        for (file, bytes) in contents {
            std::fs::write(fake.path(0, FILES[file]), bytes).unwrap();
        }
        match fake.cpufreq() {
            Ok(cpufreq) => {
                let ladder = cpufreq.speeds().ladder;
                prop_assert!(ladder.speeds().count() >= 2);
                prop_assert!(ladder.speeds().count() <= 64);
            }
            Err(CpufreqError::Domain(error)) => prop_assert!(error.to_string().contains("policy0")),
            Err(CpufreqError::OneSpeed(_) | CpufreqError::NoCpufreq) => {}
        }
    }
}
