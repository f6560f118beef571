//! Programs without a period, raised above ordinary ones: given back, left alone; and
//! what one gets by saying that it was late.

use onbeat_act::attributes::{Attributes, Fair, Policy};

use crate::compiled::compiled;
use crate::*;

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
    until("a program at nice 0", || now(&crier) == Some(DEFAULT));
    crier
}

fn now(process: &Mortal) -> Option<Attributes> {
    Attributes::get(process.id()).ok()
}

/// A crier that sleeps, once onbeat has raised it.
fn raised(folder: &Folder) -> (Mortal, Mortal) {
    let crier = crier(folder, "sleeps");
    let onbeat = folder.attach(crier.id(), &["--quiet"]);
    until("that it is raised", || now(&crier) != Some(DEFAULT));
    (crier, onbeat)
}

#[test]
fn an_ordinary_program_is_raised_and_given_back() {
    let folder = Folder::new();
    let (crier, mut onbeat) = raised(&folder);
    assert_eq!(onbeat.ends(libc::SIGTERM), Some(0));
    assert_eq!(now(&crier), Some(DEFAULT));
    assert_eq!(folder.state_files(), 0);
    let log = folder.log();
    let mut of_it = log.iter().filter(|entry| entry.get("new_boost").is_some());
    assert_eq!(of_it.next().unwrap()["what"], "boosted");
    assert_eq!(of_it.next_back().unwrap()["what"], "boost-ended");
}

#[test]
fn who_never_blocks_and_cries_has_no_more_than_its_account() {
    let folder = Folder::new();
    let cheater = crier(&folder, "floods");
    let mut onbeat = folder.attach(cheater.id(), &["--quiet"]);
    let why = "its application has used up its CPU time before others";
    until("the end of its account", || {
        let is_told = folder.entry(|entry| entry["why"] == why).is_some();
        is_told && now(&cheater) == Some(DEFAULT)
    });
    assert_eq!(onbeat.ends(libc::SIGTERM), Some(0));
}

#[test]
fn a_raised_program_that_is_reniced_by_hand_is_left_alone() {
    let folder = Folder::new();
    let (crier, mut onbeat) = raised(&folder);
    let by_hand = DEFAULT.with_nice(7);
    until("that onbeat notices", || {
        // It may have been about to raise it.
        by_hand.set(crier.id()).unwrap();
        let changed = |entry: &Value| entry["why"] == "it or another program set its nice value";
        folder.entry(changed).is_some()
    });
    assert_eq!(onbeat.ends(libc::SIGTERM), Some(0));
    assert_eq!(now(&crier), Some(by_hand));
}
