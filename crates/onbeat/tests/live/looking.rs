//! `onbeat top` with a loop of its own.

use crate::terminal::Terminal;
use crate::*;

#[test]
fn a_program_is_kept_while_it_is_looked_at_and_ends_with_the_look() {
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

#[test]
fn a_terminal_that_is_closed_ends_the_look_at_a_running_program_and_gives_all_back() {
    let folder = Folder::new();
    let program = working(&["beat:20000/2000"]);
    let before = scheduling(program.id());
    let mut onbeat = folder.keep("top");
    let mut screen = Terminal::start(onbeat.arg("--pid").arg(program.id().to_string()));
    screen.shows(&format!("process {}", program.id()));
    screen.line_with("workload", "kept");
    assert_eq!(screen.closes().code(), Some(0));
    assert_eq!(scheduling(program.id()), before);
    assert_eq!(folder.state_files(), 0);
}
