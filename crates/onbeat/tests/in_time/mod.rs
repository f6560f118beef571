//! A program that must have the period that it is written with, on a machine where others want the
//! CPU.

use std::process::Command;

/// The starter that gives a program its CPU time whatever else runs here; nothing where that is not
/// to be had.
pub(crate) fn in_time() -> &'static [&'static str] {
    const REAL_TIME: &[&str] = &["chrt", "--fifo", "5"];
    let tried = Command::new(REAL_TIME[0])
        .args(&REAL_TIME[1..])
        .arg("true")
        .status();
    if tried.is_ok_and(|status| status.success()) {
        REAL_TIME
    } else {
        &[]
    }
}
