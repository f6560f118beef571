//! `onbeat reserve`: the program has the reservation, and onbeat its exit status.

use crate::*;

/// The words of `onbeat reserve`.
fn words<'a>(runtime: &'a str, period: &'a str, program: &[&'a str]) -> Vec<&'a str> {
    let times = ["reserve", "--runtime", runtime, "--period", period];
    [&times[..], program].concat()
}

#[test]
fn the_program_runs_under_the_reservation_from_its_first_instruction_on() {
    let state = tempfile::tempdir().unwrap();
    let program = ["--deadline", "40ms", "--", "sh", "-c", "chrt -p $$; exit 7"];
    let output = ran(state.path(), &words("2ms", "50ms", &program));
    assert_eq!(output.status.code(), Some(7), "{}", stderr(&output));
    has(
        stdout(&output),
        &["SCHED_DEADLINE", "2000000/40000000/50000000"],
    );
    assert_eq!(state_files(state.path()), 0);
}

#[test]
fn what_is_reserved_is_noted_before_and_a_signal_goes_on_to_the_program() {
    let state = tempfile::tempdir().unwrap();
    let sleep = ["--", "sleep", "1000"];
    let mut reserve = started(state.path(), &words("2ms", "50ms", &sleep));
    let program = child_of(reserve.id(), "sleep");
    assert_eq!(policy(program), DEADLINE);
    assert_eq!(state_files(state.path()), 1);
    assert_eq!(reserve.ends(libc::SIGTERM), Some(128 + libc::SIGTERM));
    assert_eq!(state_files(state.path()), 0);
}

#[test]
fn what_cannot_be_reserved_or_executed_is_told_and_nothing_runs() {
    let state = tempfile::tempdir().unwrap();
    let mark = state.path().join("mark");
    let touch = ["touch", mark.to_str().unwrap()];
    for (runtime, period, program, code, told) in [
        ("30ms", "20ms", &touch[..], 125, "does not fit"),
        ("100ns", "20ms", &touch, 125, "cannot reserve"),
        ("1s", "1000s", &touch, 125, "cannot reserve"),
        ("2ms", "50ms", &["/nowhere/at/all"], 127, "/nowhere/at/all"),
        ("2ms", "50ms", &["/"], 126, "/"),
    ] {
        let program = [&["--"], program].concat();
        let output = ran(state.path(), &words(runtime, period, &program));
        assert_eq!(output.status.code(), Some(code), "{}", stderr(&output));
        has(stderr(&output), &[told]);
    }
    assert!(!mark.exists());
    assert_eq!(state_files(state.path()), 0);
}
