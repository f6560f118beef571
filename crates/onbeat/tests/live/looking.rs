//! `onbeat top` with a loop of its own.

use std::process::ExitStatus;

use crate::terminal::Terminal;
use crate::*;

#[test]
fn a_program_is_kept_while_it_is_looked_at_and_ends_with_the_look() {
    needs_root!();
    let folder = Folder::new();
    let mut onbeat = folder.keep("top");
    onbeat.arg("--").arg(workload()).arg("beat:20000/2000");
    let mut screen = Terminal::start(&mut onbeat);
    screen.line_with("workload", "kept");
    assert_eq!(folder.state_files(), 1);
    screen.press("\x03");
    let status = screen.ends();
    assert_eq!(status.code(), Some(128 + libc::SIGTERM));
    assert_eq!(folder.state_files(), 0);
    assert!(
        screen.text().contains("onbeat itself used"),
        "no closing table"
    );
    assert!(folder.log().iter().any(|entry| entry["what"] == "released"));
}

/// Looks at a running program until `end` has ended the look; all is given back then.
fn gives_all_back_after(end: impl FnOnce(Terminal) -> ExitStatus) {
    let folder = Folder::new();
    let program = working(&["beat:20000/2000"]);
    let before = scheduling(program.id());
    let mut onbeat = folder.keep("top");
    let mut screen = Terminal::start(onbeat.arg("--pid").arg(program.id().to_string()));
    screen.shows(&format!("process {}", program.id()));
    screen.line_with("workload", "kept");
    assert_eq!(end(screen).code(), Some(0));
    assert_eq!(scheduling(program.id()), before);
    assert_eq!(folder.state_files(), 0);
}

#[test]
fn a_signal_ends_the_look_at_a_running_program_and_gives_all_back() {
    needs_root!();
    gives_all_back_after(|mut screen| {
        screen.signal(libc::SIGTERM);
        screen.ends()
    });
}

#[test]
fn a_terminal_that_is_closed_ends_the_look_and_gives_all_back() {
    needs_root!();
    gives_all_back_after(Terminal::closes);
}
