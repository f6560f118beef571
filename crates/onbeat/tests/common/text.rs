//! What programs print.

use std::process::Output;

pub(crate) fn stdout(output: &Output) -> &str {
    std::str::from_utf8(&output.stdout).expect("results are text")
}

pub(crate) fn stderr(output: &Output) -> &str {
    std::str::from_utf8(&output.stderr).expect("messages are text")
}

/// The text has each of these parts.
#[track_caller]
pub(crate) fn has(text: impl AsRef<str>, parts: &[impl AsRef<str>]) {
    let text = text.as_ref();
    for part in parts.iter().map(AsRef::as_ref) {
        assert!(text.contains(part), "no {part}: {text}");
    }
}
