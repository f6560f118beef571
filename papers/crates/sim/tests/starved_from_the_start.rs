//! Programs that hogs starve before their first job: they sleep until absolute times, so onbeat
//! knows their periods all the same.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::Path;

use onbeat_sim::scenario::{Outputs, ScenarioRun, parse};

/// The three tasks of LFS++'s Table I with 79% of one CPU in all, beside 4 hogs that are there
/// first. The CPU ends budgets and slices at the kernel's tick of 250 Hz.
fn table_one(deviation_percent: u64) -> String {
    let mut text = String::from(
        r#"
duration = "12s"
[machine]
tick = "4ms"
fair_server = 0.05
[onbeat]
[[task]]
name = "hog"
count = 4
arrival = "always"
demand = "endless"
tracked = false
"#,
    );
    for (name, period, mean) in [
        ("short", 3_505, 1_051),
        ("middle", 8_220, 2_301),
        ("long", 100_000, 21_000),
    ] {
        let deviation = mean * deviation_percent / 100;
        text += &format!(
            r#"
[[task]]
name = "{name}"
phase = "50ms"
arrival = {{ periodic = "{period}us" }}
demand = {{ normal = {{ mean = "{mean}us", deviation = "{deviation}us", most = "30ms" }} }}
"#
        );
    }
    text
}

/// How many jobs of each task were released from 2 s on, and how many of them missed their
/// deadline.
fn from_two_seconds_on(text: &str, seed: u64) -> BTreeMap<String, (u64, u64)> {
    let scenario = parse(text, Path::new("test.toml")).unwrap();
    let jobs = tempfile::NamedTempFile::new().unwrap();
    let outputs = Outputs {
        jobs: Some(Box::new(File::create(jobs.path()).unwrap())),
        timeline: None,
    };
    ScenarioRun::new(&scenario)
        .seeded(seed)
        .run(outputs, |_| {})
        .unwrap();
    let csv = fs::read_to_string(jobs.path()).unwrap();
    let mut tasks = BTreeMap::new();
    for row in csv.lines().skip(1) {
        let fields: Vec<&str> = row.split(',').collect();
        let released_ns: u64 = fields[2].parse().unwrap();
        if released_ns >= 2_000_000_000 {
            let (jobs, missed) = tasks.entry(fields[0].to_owned()).or_insert((0, 0));
            *jobs += 1;
            *missed += u64::from(fields[8] == "1");
        }
    }
    tasks
}

#[test]
fn table_one_is_in_time_from_two_seconds_on_though_hogs_were_there_first() {
    for deviation_percent in [0, 5] {
        for seed in 0..4 {
            let tasks = from_two_seconds_on(&table_one(deviation_percent), seed);
            let due = [("short", 2_852), ("middle", 1_215), ("long", 99)];
            for (name, due) in due {
                let (jobs, missed) = tasks[name];
                assert!(jobs >= due, "{name}: {jobs} of {due} jobs are over");
                assert!(
                    missed * 100 <= jobs,
                    "{name}, seed {seed}: {missed} of {jobs}"
                );
            }
        }
    }
}
