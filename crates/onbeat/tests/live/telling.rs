//! Programs that say where their jobs are, and when they were late.

use crate::compiled::compiled;
use crate::*;

fn run(folder: &Folder, arguments: &[&str]) -> Command {
    let mut onbeat = folder.keep("run");
    onbeat
        .args(RESERVES)
        .arg("--")
        .arg(compiled("marker", &folder.path("marker")))
        .args(arguments);
    onbeat
}

fn says(entry: &Value, why: &str) -> bool {
    let said = entry["why"].as_str();
    said.is_some_and(|said| said.starts_with(why))
}

fn runtime(reservation: &Value) -> Option<u64> {
    reservation["runtime_ns"].as_u64()
}

#[test]
fn every_mark_of_a_prime_number_of_jobs_counts() {
    let folder = Folder::new();
    let ended = run(&folder, &["401", "4000", "300", "cries"]).status();
    assert!(ended.is_ok_and(|status| status.success()));
    let report = folder.report();
    let told = &report["threads"][0];
    assert_eq!(told["comm"], "marker");
    assert_eq!(told["jobs"], 401);
    assert_eq!(told["marks"], 1 + 401 * 3 + 1);
    assert_eq!(told["missed_told"], 401);
    assert_eq!(told["marks_suppressed"], 0);
}

#[test]
fn a_program_that_marks_its_jobs_is_reserved_for_what_it_says_alone() {
    let folder = Folder::new();
    let mut onbeat = Mortal::spawn(&mut run(&folder, &["1000000", "20000", "2000"]));
    let first = folder.says("reserved");
    assert!(says(&first, "it marks its jobs"), "{first}");
    assert_eq!(first["new"]["period_ns"], 20_000_000);
    assert_eq!(onbeat.ends(libc::SIGTERM), Some(128 + libc::SIGTERM));
    assert_eq!(folder.state_files(), 0);
}

#[test]
fn the_bandwidth_of_a_program_that_cries_wolf_returns() {
    let folder = Folder::new();
    let mut onbeat = Mortal::spawn(&mut run(&folder, &["1000000", "20000", "2000", "cries"]));
    let is_cry = |entry: &Value| says(entry, "it says that it missed a deadline");
    eventually("the bandwidth that it got returns", || {
        let log = folder.log();
        let cry = log.iter().rposition(is_cry)?;
        let before = runtime(&log[cry]["old"])?;
        let mut later = log[cry..].iter().filter_map(|entry| runtime(&entry["new"]));
        later.any(|now| now <= before).then_some(())
    });
    assert_eq!(onbeat.ends(libc::SIGTERM), Some(128 + libc::SIGTERM));
}
