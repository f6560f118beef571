pub(crate) mod optimum;

use proptest::test_runner::{Config, RngSeed};

/// The same cases in each run of a property.
pub(crate) fn same_cases() -> Config {
    Config {
        rng_seed: RngSeed::Fixed(1),
        failure_persistence: None,
        ..Config::default()
    }
}
