//! A reservation comes, and goes without a trace.

use onbeat_act::attributes::{Attributes, Policy, RealTime};
use serde_json::json;

use crate::{Folder, Mortal, eventually, needs_root, reserved_thread, scheduling, working};

#[test]
fn a_periodic_program_gets_a_reservation_and_gives_it_back() {
    needs_root!();
    let folder = Folder::new();
    let program = working(&["beat:50000/4000"]);
    let before = scheduling(program.id());
    let mut onbeat = Mortal::spawn(folder.keep("attach").arg(program.id().to_string()));
    let tid = reserved_thread(program.id());
    assert_eq!(folder.state_files(), 1);
    onbeat.signal(libc::SIGINT);
    assert_eq!(onbeat.status(), Some(0));
    assert_eq!(scheduling(program.id()), before);
    assert_eq!(folder.state_files(), 0);
    let whats: Vec<_> = folder
        .log()
        .into_iter()
        .filter(|entry| entry["tid"] == tid)
        .map(|entry| entry["what"].clone())
        .collect();
    assert!(whats.contains(&json!("reserved")), "{whats:?}");
    assert_eq!(whats.last(), Some(&json!("released")), "{whats:?}");
    assert_eq!(folder.report()["lost_events"], 0);
}

#[test]
fn a_program_that_was_started_before_is_kept_beside_the_one_that_is_run() {
    needs_root!();
    let folder = Folder::new();
    let other = working(&["beat:40000/2000"]);
    let before = scheduling(other.id());
    let mut onbeat = Mortal::spawn(folder.keep("run").args([
        "--also",
        &other.id().to_string(),
        "--",
        "sleep",
        "1000",
    ]));
    reserved_thread(other.id());
    onbeat.signal(libc::SIGTERM);
    assert_eq!(onbeat.status(), Some(128 + libc::SIGTERM));
    assert_eq!(scheduling(other.id()), before);
}

#[test]
fn what_an_administrator_sets_by_hand_stays() {
    needs_root!();
    let folder = Folder::new();
    let program = working(&["beat:50000/4000"]);
    let mut onbeat = Mortal::spawn(folder.keep("attach").arg(program.id().to_string()));
    let tid = reserved_thread(program.id());
    let by_hand = Attributes {
        policy: Policy::Fifo(RealTime { priority: 5 }),
        reset_on_fork: false,
    };
    // A change that onbeat was about to make may come after it once; then it is made again.
    let entry = eventually("onbeat notices", || {
        by_hand.set(tid).expect("root may");
        folder
            .log()
            .into_iter()
            .find(|entry| entry["what"] == "taken-over")
    });
    assert_eq!((&entry["tid"], &entry["new"]), (&json!(tid), &json!(null)));
    onbeat.signal(libc::SIGTERM);
    assert_eq!(onbeat.status(), Some(0));
    assert_eq!(Attributes::get(tid).ok(), Some(by_hand));
}
