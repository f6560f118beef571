//! A reservation comes, and goes without a trace.

use serde_json::json;

use crate::*;

#[test]
fn a_periodic_program_gets_a_reservation_and_gives_it_back() {
    let folder = Folder::new();
    let program = working(&["beat:50000/4000"]);
    let before = scheduling(program.id());
    let mut onbeat = folder.attach(program.id(), &[]);
    let tid = reserved_thread(program.id());
    assert_eq!(folder.state_files(), 1);
    assert_eq!(onbeat.ends(libc::SIGINT), Some(0));
    assert_eq!(scheduling(program.id()), before);
    assert_eq!(folder.state_files(), 0);
    let log = folder.log().into_iter();
    let of_it = log.filter(|entry| entry["tid"] == tid);
    let whats: Vec<_> = of_it.map(|entry| entry["what"].clone()).collect();
    assert!(whats.contains(&json!("reserved")), "{whats:?}");
    assert_eq!(whats.last(), Some(&json!("released")), "{whats:?}");
    assert_eq!(folder.report()["lost_events"], 0);
}

#[test]
fn a_program_that_was_started_before_is_kept_beside_the_one_that_is_run() {
    let folder = Folder::new();
    let other = working(&["beat:40000/2000"]);
    let before = scheduling(other.id());
    let mut run = folder.keep("run");
    run.args(["--also", &other.id().to_string(), "--", "sleep", "1000"]);
    let mut onbeat = Mortal::spawn(&mut run);
    reserved_thread(other.id());
    assert_eq!(onbeat.ends(libc::SIGTERM), Some(128 + libc::SIGTERM));
    assert_eq!(scheduling(other.id()), before);
}
