//! `onbeat top` where there is nothing to look at, or nowhere to show it.

use std::process::Command;

use crate::*;

#[test]
fn without_a_terminal_it_says_what_to_do_instead() {
    let output = onbeat(["top"]);
    assert_eq!(output.status.code(), Some(1));
    has(stderr(&output), &["not a terminal: --once"]);
}

#[test]
fn without_a_service_it_says_how_to_look_without_one() {
    let output = Command::new(env!("CARGO_BIN_EXE_onbeat"))
        .args(["top", "--once"])
        .env("DBUS_SYSTEM_BUS_ADDRESS", "unix:path=/nowhere/at/all")
        .env("ONBEAT_STATE_DIR", "/nowhere/at/all")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    for part in ["cannot connect to the system bus", "sudo onbeat top -- CMD"] {
        has(stderr(&output), &[part]);
    }
}
