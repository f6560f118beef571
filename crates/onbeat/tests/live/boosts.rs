//! Programs without a period, raised above ordinary ones: given back, left alone, restored; and
//! what one gets by saying that it was late.

use std::process::Command;

use onbeat_act::attributes::{Attributes, Fair, Policy};
use serde_json::Value;

use crate::compiled::compiled;
use crate::guard::kill_with_guard;
use crate::{Folder, Mortal, eventually, needs_root, onbeat};

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
    Mortal::spawn(attach.arg("--quiet").args(pids))
}

fn raised(crier: &Mortal) {
    eventually("that it is raised", || {
        (has(crier)? != DEFAULT).then_some(())
    });
}

/// The decisions about the boost of a process.
fn told<'a>(log: &'a [Value], crier: &'a Mortal) -> impl Iterator<Item = &'a str> {
    log.iter()
        .filter(|entry| entry["tid"] == crier.id() && entry.get("new_boost").is_some())
        .filter_map(|entry| entry["what"].as_str())
}

#[test]
fn an_ordinary_program_is_raised_and_given_back() {
    needs_root!();
    let folder = Folder::new();
    let crier = crier(&folder, "sleeps");
    let mut onbeat = attach(&folder, &[&crier]);
    raised(&crier);
    onbeat.signal(libc::SIGTERM);
    assert_eq!(onbeat.status(), Some(0));
    assert_eq!(has(&crier), Some(DEFAULT));
    assert_eq!(folder.state_files(), 0);
    let log = folder.log();
    let whats: Vec<&str> = told(&log, &crier).collect();
    assert_eq!(whats.first(), Some(&"boosted"));
    assert_eq!(whats.last(), Some(&"boost-ended"));
}

#[test]
fn who_never_blocks_and_cries_has_no_more_than_its_account() {
    needs_root!();
    let folder = Folder::new();
    let cheater = crier(&folder, "floods");
    let mut onbeat = attach(&folder, &[&cheater]);
    eventually("the end of its account", || {
        let log = folder.log();
        let used_up = |entry: &Value| {
            entry["why"] == "its application has used up its CPU time before others"
        };
        let told: Vec<&Value> = log.iter().filter(|entry| used_up(entry)).collect();
        (!told.is_empty() && has(&cheater) == Some(DEFAULT)).then_some(())
    });
    onbeat.signal(libc::SIGTERM);
    assert_eq!(onbeat.status(), Some(0));
}

#[test]
fn a_raised_program_that_is_reniced_by_hand_is_left_alone() {
    needs_root!();
    let folder = Folder::new();
    let crier = crier(&folder, "sleeps");
    let mut onbeat = attach(&folder, &[&crier]);
    raised(&crier);
    let by_hand = DEFAULT.with_nice(7);
    eventually("that onbeat notices", || {
        // It may have been about to raise it.
        by_hand.set(crier.id()).unwrap();
        let changed = |entry: &Value| entry["why"] == "it or another program set its nice value";
        folder.log().iter().any(changed).then_some(())
    });
    onbeat.signal(libc::SIGTERM);
    assert_eq!(onbeat.status(), Some(0));
    assert_eq!(has(&crier), Some(by_hand));
}

#[test]
fn what_a_killed_onbeat_and_guard_left_raised_is_restored() {
    needs_root!();
    let folder = Folder::new();
    let crier = crier(&folder, "sleeps");
    let killed = attach(&folder, &[&crier]);
    raised(&crier);
    kill_with_guard(killed);
    let restored = onbeat(&folder.state()).arg("restore").output().unwrap();
    assert!(restored.status.success(), "{restored:?}");
    assert_eq!(has(&crier), Some(DEFAULT));
    assert_eq!(folder.state_files(), 0);
}
