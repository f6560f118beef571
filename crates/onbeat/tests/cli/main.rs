//! The command line as a person and a script meet it, without root.

mod analyze;
mod arguments;
#[path = "../documented/mod.rs"]
mod documented;
mod formats;
mod generated;
mod replay;
mod top;

use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::{Command, Output};

/// Runs onbeat to its end.
fn onbeat<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Output {
    Command::new(env!("CARGO_BIN_EXE_onbeat"))
        .args(args)
        .env_remove("ONBEAT_STATE_DIR")
        .output()
        .expect("onbeat was built by this test run")
}

/// The output, which must be text.
fn stdout(output: &Output) -> &str {
    std::str::from_utf8(&output.stdout).expect("results are text")
}

/// Its messages.
fn stderr(output: &Output) -> &str {
    std::str::from_utf8(&output.stderr).expect("messages are text")
}

/// A file of the checkout.
fn checkout(path: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(path)
}
