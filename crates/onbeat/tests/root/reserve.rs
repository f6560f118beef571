//! `onbeat reserve`: the program has the reservation, and onbeat its exit status.

use std::fs;
use std::process::Stdio;

use crate::{
    DEADLINE, Mortal, eventually, needs_root, onbeat, policy, state_files, stderr, stdout,
};

const RESERVATION: [&str; 4] = ["--runtime", "2ms", "--period", "50ms"];

#[test]
fn the_program_runs_under_the_reservation_from_its_first_instruction_on() {
    needs_root!();
    let state = tempfile::tempdir().unwrap();
    let output = onbeat(state.path())
        .arg("reserve")
        .args(RESERVATION)
        .args(["--deadline", "40ms", "--", "sh", "-c", "chrt -p $$; exit 7"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(7), "{}", stderr(&output));
    assert!(
        stdout(&output).contains("SCHED_DEADLINE"),
        "{}",
        stdout(&output)
    );
    assert!(
        stdout(&output).contains("2000000/40000000/50000000"),
        "{}",
        stdout(&output)
    );
    assert_eq!(state_files(state.path()), 0);
}

#[test]
fn what_is_reserved_is_noted_before_and_a_signal_goes_on_to_the_program() {
    needs_root!();
    let state = tempfile::tempdir().unwrap();
    let mut reserve = Mortal::spawn(
        onbeat(state.path())
            .arg("reserve")
            .args(RESERVATION)
            .args(["--", "sleep", "1000"])
            .stderr(Stdio::null()),
    );
    let program = eventually("the program", || child_of(reserve.id(), "sleep"));
    assert_eq!(policy(program), DEADLINE);
    assert_eq!(state_files(state.path()), 1);
    reserve.signal(libc::SIGTERM);
    assert_eq!(reserve.status(), Some(128 + libc::SIGTERM));
    assert_eq!(state_files(state.path()), 0);
}

#[test]
fn what_cannot_be_reserved_or_executed_is_told_and_nothing_runs() {
    needs_root!();
    let state = tempfile::tempdir().unwrap();
    let mark = state.path().join("mark");
    let mark = mark.to_str().unwrap();
    for (args, code, told) in [
        (
            ["--runtime", "30ms", "--period", "20ms"],
            125,
            "does not fit",
        ),
        (
            ["--runtime", "100ns", "--period", "20ms"],
            125,
            "cannot reserve",
        ),
        (
            ["--runtime", "1s", "--period", "1000s"],
            125,
            "cannot reserve",
        ),
    ] {
        let output = onbeat(state.path())
            .arg("reserve")
            .args(args)
            .args(["--", "touch", mark])
            .output()
            .unwrap();
        assert_eq!(
            output.status.code(),
            Some(code),
            "{args:?} {}",
            stderr(&output)
        );
        assert!(
            stderr(&output).contains(told),
            "{args:?} {}",
            stderr(&output)
        );
    }
    assert!(fs::metadata(mark).is_err());
    for (program, code) in [("/nowhere/at/all", 127), ("/", 126)] {
        let output = onbeat(state.path())
            .arg("reserve")
            .args(RESERVATION)
            .args(["--", program])
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(code), "{}", stderr(&output));
        assert!(stderr(&output).contains(program), "{}", stderr(&output));
    }
    assert_eq!(state_files(state.path()), 0);
}

/// The child of `parent` that has become `comm`.
fn child_of(parent: u32, comm: &str) -> Option<u32> {
    let children = fs::read_to_string(format!("/proc/{parent}/task/{parent}/children")).ok()?;
    let mut children = children
        .split_whitespace()
        .filter_map(|child| child.parse().ok());
    children.find(|child: &u32| {
        fs::read_to_string(format!("/proc/{child}/comm")).is_ok_and(|name| name.trim() == comm)
    })
}
