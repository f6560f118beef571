//! `onbeat daemon`'s input: its configuration in TOML, in one file or two.
#![no_main]

use std::path::PathBuf;

use onbeat_daemon::config;

libfuzzer_sys::fuzz_target!(|text: &str| {
    let (first, second) = text.split_once('\0').unwrap_or((text, ""));
    let file = |name: &str, text: &str| (PathBuf::from(name), text.to_owned());
    let lines = [first, second].map(|text| text.matches('\n').count() + 1);
    match config::parse(&[file("first", first), file("second", second)]) {
        Ok(config) => {
            assert!(
                config.budgets.total > 0.0 && config.budgets.total <= 1.0,
                "{config:?}"
            );
            assert!(
                config.budgets.parameters.above < config.budgets.parameters.window,
                "{config:?}"
            );
            assert!(!config.rules.scan.is_zero());
        }
        Err(error) => {
            let told = error.to_string();
            let mut parts = told.splitn(3, ':');
            let name = parts.next().unwrap_or_default();
            let most = if name == "first" { lines[0] } else { lines[1] };
            assert!(name == "first" || name == "second", "{told}");
            let line = parts.next().and_then(|line| line.parse::<usize>().ok());
            assert!(
                line.is_some_and(|line| (1..=most).contains(&line)),
                "{told}"
            );
            assert!(
                parts.next().is_some_and(|problem| problem.len() > 5),
                "{told}"
            );
        }
    }
});
