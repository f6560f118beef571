//! `onbeat top` where there is nothing to look at, or nowhere to show it.

use std::process::Command;

use crate::{onbeat, stderr};

#[test]
fn without_a_terminal_it_says_what_to_do_instead() {
    let output = onbeat(["top"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stderr(&output).contains("not a terminal: --once"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn without_a_service_it_says_how_to_look_without_one() {
    let output = Command::new(env!("CARGO_BIN_EXE_onbeat"))
        .args(["top", "--once"])
        .env("DBUS_SYSTEM_BUS_ADDRESS", "unix:path=/nowhere/at/all")
        .env("ONBEAT_STATE_DIR", "/nowhere/at/all")
        .output()
        .expect("onbeat was built by this test run");
    assert_eq!(output.status.code(), Some(1));
    for part in ["cannot connect to the system bus", "sudo onbeat top -- CMD"] {
        assert!(stderr(&output).contains(part), "{}", stderr(&output));
    }
}

#[test]
fn how_to_keep_and_what_is_not_kept_here_do_not_go_together() {
    for arguments in [
        &["top", "--cap", "50%"][..],
        &["top", "--once", "--pid", "1"],
        &["top", "--pid", "1", "--", "true"],
    ] {
        let output = onbeat(arguments);
        assert_eq!(
            output.status.code(),
            Some(2),
            "{arguments:?}: {}",
            stderr(&output)
        );
    }
}
