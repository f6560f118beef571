//! Wrong arguments and files: a clear message, the right exit status, never a panic.

use std::fs;
use std::process::{Command, Stdio};

use crate::*;

#[test]
fn a_wrong_command_line_is_told_with_status_2() {
    for (words, told) in [
        ("run", "<CMD>"),
        ("run true", "behind two dashes: -- true"),
        ("run --cap 0.6 -- true", "60% or 0.6%"),
        ("run --cap 0 -- true", "as in 85%"),
        ("attach", "<PID>"),
        ("attach mplayer", "$(pidof mplayer)"),
        ("record -o x", "required"),
        ("record -- true", "--output"),
        ("record -o x -p 1 -- true", "cannot be used with"),
        ("watch", "<CMD>"),
        ("watch --tracer spy -- true", "ptrace"),
        ("analyze", "<FILE>"),
        ("analyze x --window 1", "as in 500us"),
        ("analyze x --window 0s", "above zero"),
        ("reserve --runtime 5ms -- true", "--period"),
        ("reserve --runtime 5 --period 20ms -- true", "as in 500us"),
        ("top --cap 50%", "required"),
        ("top --once --pid 1", "cannot be used with"),
        ("top --pid 1 -- true", "cannot be used with"),
        ("dance", "unrecognized subcommand"),
    ] {
        let args: Vec<&str> = words.split(' ').collect();
        let output = onbeat(&args);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {said}");
        has(said, &[told]);
        assert_eq!(stdout(&output), "", "{args:?}");
    }
}

#[test]
fn a_tracer_that_cannot_do_what_is_asked_says_what_can() {
    for (words, told) in [
        (
            "record --tracer perf --wakeups -o /dev/null -- true",
            "--tracer bpf or tracefs",
        ),
        (
            "record --tracer bpf --calls read -o /dev/null -- true",
            "leave out --calls",
        ),
    ] {
        let args: Vec<&str> = words.split(' ').collect();
        let output = onbeat(&args);
        assert_ne!(output.status.code(), Some(0), "{args:?}");
        has(stderr(&output), &[told]);
    }
    let unknown = onbeat(["record", "--calls", "getpid", "-o", "x", "--", "true"]);
    assert_eq!(unknown.status.code(), Some(2));
    has(stderr(&unknown), &["clock_nanosleep"]);
}

#[test]
fn a_wrong_setting_is_told_with_its_file_and_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.toml");
    fs::write(&path, "[prediction]\nspred = 0.2\n").unwrap();
    let path = path.to_str().unwrap();
    for (setting, told) in [
        (path, "run.toml:2: unknown field `spred`, expected one of"),
        (
            "/nowhere",
            "cannot read /nowhere (--config takes a file, or KEY=VALUE)",
        ),
        ("weights.mplayer=0.0", "--config:1: write a weight above 0"),
        ("power.rule=\"band\"", "no effect with --dry-run"),
    ] {
        let output = onbeat(["run", "--dry-run", "--config", setting, "--", "true"]);
        assert_eq!(output.status.code(), Some(125), "{setting}");
        has(stderr(&output), &[told]);
    }
}

#[test]
fn help_and_version_are_results_and_no_argument_at_all_is_an_error() {
    let help = onbeat(["--help"]);
    assert_eq!(help.status.code(), Some(0));
    for command in [
        "run", "attach", "record", "analyze", "reserve", "doctor", "restore", "generate",
    ] {
        assert!(stdout(&help).contains(command), "{command}");
        let output = onbeat([command, "--help"]);
        assert_eq!(output.status.code(), Some(0), "{command}");
        assert!(stdout(&output).contains("Usage: onbeat"), "{command}");
    }
    assert_eq!(
        stdout(&onbeat(["--version"])),
        concat!("onbeat ", env!("CARGO_PKG_VERSION"), "\n")
    );
    assert_eq!(onbeat([""; 0]).status.code(), Some(2));
}

#[test]
fn a_file_that_is_no_recording_is_told_by_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    fs::write(path("empty"), "").unwrap();
    fs::write(path("noise"), [0xff, 0x00, 0x9f, 0x1b].repeat(1000)).unwrap();
    fs::write(path("half.gz"), [0x1f, 0x8b, 8, 0]).unwrap();
    fs::write(path("prose.txt"), "It was a dark night.\n").unwrap();
    let later = "{\"format\":\"onbeat-recording\",\"version\":99}\n";
    fs::write(path("own"), later).unwrap();
    for name in ["missing", "empty", "noise", "half.gz", "prose.txt", "own"] {
        let output = onbeat(["analyze", &path(name)]);
        let told = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{name}: {told}");
        has(told, &["onbeat: ", name]);
        assert!(!told.contains("panicked"), "{name}: {told}");
        assert_eq!(stdout(&output), "", "{name}");
    }
    let output = onbeat(["analyze", folder.path().to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
}

#[test]
fn a_reader_that_goes_away_ends_it_quietly() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("long.csv");
    // Enough windows for far more output than a pipe holds.
    let rows: String = (0..200_000_u64)
        .map(|n| format!("{}\n", n * 1_000_000))
        .collect();
    fs::write(&file, rows).unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_onbeat"))
        .args(["analyze", "--json", "--window", "10ms"])
        .arg(&file)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(stderr(&output), "");
}
