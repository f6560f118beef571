//! Programs without a rhythm that say they were late: there is no reservation that could be raised.

use std::process::Command;

use onbeat_act::attributes::{Attributes, Fair, Policy};
use serde_json::Value;

use crate::compiled::compiled;
use crate::guard::kill_with_guard;
use crate::{Folder, Mortal, RESERVES, can_run, eventually, onbeat};

const DEFAULT: Attributes = Attributes {
    policy: Policy::Other(Fair {
        nice: 0,
        slice_ns: 0,
    }),
    reset_on_fork: false,
};

/// Compiles crier.c into the folder, and starts it.
fn crier(folder: &Folder, how: &str) -> Mortal {
    let program = folder.path("crier");
    compiled("crier", &program);
    let crier = Mortal::spawn(Command::new(&program).arg(how));
    eventually("a program at nice 0", || {
        (has(&crier) == Some(DEFAULT)).then_some(())
    });
    crier
}

fn has(process: &Mortal) -> Option<Attributes> {
    Attributes::get(process.id()).ok()
}

fn attach(folder: &Folder, criers: &[&Mortal]) -> Mortal {
    let mut attach = folder.keep("attach");
    let pids = criers.iter().map(|crier| crier.id().to_string());
    Mortal::spawn(attach.args(RESERVES).arg("--quiet").args(pids))
}

fn nice(process: &Mortal) -> i32 {
    has(process).and_then(|now| now.nice()).unwrap_or(0)
}

fn boosted(crier: &Mortal) {
    eventually("a boost", || (nice(crier) < 0).then_some(()));
}

/// The decisions about the boost of a process.
fn told<'a>(log: &'a [Value], crier: &'a Mortal) -> impl Iterator<Item = &'a str> {
    log.iter()
        .filter(|entry| entry["tid"] == crier.id() && entry.get("new_boost").is_some())
        .filter_map(|entry| entry["what"].as_str())
}

#[test]
fn an_ordinary_program_that_was_late_is_boosted_and_given_back() {
    if !can_run("an_ordinary_program_that_was_late_is_boosted_and_given_back") {
        return;
    }
    let folder = Folder::new();
    let crier = crier(&folder, "sleeps");
    let mut onbeat = attach(&folder, &[&crier]);
    boosted(&crier);
    onbeat.signal(libc::SIGTERM);
    assert_eq!(onbeat.status(), Some(0));
    assert_eq!(has(&crier), Some(DEFAULT));
    assert_eq!(folder.state_files(), 0);
    let log = folder.log();
    let whats: Vec<&str> = told(&log, &crier).collect();
    assert_eq!(whats.first(), Some(&"boosted"));
    assert_eq!(whats.last(), Some(&"boost-ended"));
    assert_eq!(folder.report()["boosted"], 1);
}

#[test]
fn cheaters_that_never_block_are_not_boosted_however_much_and_many_they_cry() {
    if !can_run("cheaters_that_never_block_are_not_boosted") {
        return;
    }
    let folder = Folder::new();
    let honest = crier(&folder, "sleeps");
    let cheaters: Vec<Mortal> = (0..3).map(|_| crier(&folder, "floods")).collect();
    let all: Vec<&Mortal> = cheaters.iter().chain([&honest]).collect();
    let mut onbeat = attach(&folder, &all);
    // They have been heard as long as the honest one by then.
    boosted(&honest);
    onbeat.signal(libc::SIGTERM);
    assert_eq!(onbeat.status(), Some(0));
    let log = folder.log();
    for cheater in &cheaters {
        assert_eq!(told(&log, cheater).count(), 0);
        assert_eq!(has(cheater), Some(DEFAULT));
    }
    assert_eq!(folder.report()["boosted"], 1);
}

#[test]
fn a_boosted_program_that_begins_to_cheat_loses_its_boost_though_it_cries_on() {
    if !can_run("a_boosted_program_that_begins_to_cheat_loses_its_boost") {
        return;
    }
    let folder = Folder::new();
    let crier = crier(&folder, "sleeps");
    let mut onbeat = attach(&folder, &[&crier]);
    boosted(&crier);
    crier.signal(libc::SIGUSR1);
    eventually("the end of its boost", || {
        let ended = told(&folder.log(), &crier).last()? == "boost-ended";
        (ended && has(&crier) == Some(DEFAULT)).then_some(())
    });
    onbeat.signal(libc::SIGTERM);
    assert_eq!(onbeat.status(), Some(0));
}

#[test]
fn a_boosted_program_that_is_reniced_by_hand_is_left_alone() {
    if !can_run("a_boosted_program_that_is_reniced_by_hand_is_left_alone") {
        return;
    }
    let folder = Folder::new();
    let crier = crier(&folder, "sleeps");
    let mut onbeat = attach(&folder, &[&crier]);
    boosted(&crier);
    let by_hand = DEFAULT.with_nice(7);
    eventually("that onbeat notices", || {
        // It may have been about to change the boost.
        by_hand.set(crier.id()).unwrap();
        let taken_over = |entry: &Value| entry["what"] == "taken-over";
        folder.log().iter().any(taken_over).then_some(())
    });
    onbeat.signal(libc::SIGTERM);
    assert_eq!(onbeat.status(), Some(0));
    assert_eq!(has(&crier), Some(by_hand));
}

#[test]
fn a_boost_that_a_killed_onbeat_and_guard_left_is_restored() {
    if !can_run("a_boost_that_a_killed_onbeat_and_guard_left_is_restored") {
        return;
    }
    let folder = Folder::new();
    let crier = crier(&folder, "sleeps");
    let killed = attach(&folder, &[&crier]);
    boosted(&crier);
    kill_with_guard(killed);
    let restored = onbeat(&folder.state()).arg("restore").output().unwrap();
    assert!(restored.status.success(), "{restored:?}");
    assert_eq!(has(&crier), Some(DEFAULT));
    assert_eq!(folder.state_files(), 0);
}
