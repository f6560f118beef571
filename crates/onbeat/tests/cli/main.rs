//! The command line as a person and a script meet it, without root.

mod analyze;
mod arguments;
#[path = "../documented/mod.rs"]
mod documented;
mod formats;
mod generated;
mod replay;
#[path = "../common/text.rs"]
mod text;
mod top;

use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::{Command, Output};

use text::{has, stderr, stdout};

/// Runs onbeat to its end.
fn onbeat<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Output {
    Command::new(env!("CARGO_BIN_EXE_onbeat"))
        .args(args)
        .env_remove("ONBEAT_STATE_DIR")
        .output()
        .unwrap()
}

/// A file of the checkout.
fn checkout(path: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(path)
}
