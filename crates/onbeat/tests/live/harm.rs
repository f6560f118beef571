//! A reservation that does harm.

use std::process::Command;
use std::thread::available_parallelism;

use crate::{Folder, Mortal, can_run, eventually};

/// The share of one CPU that the program may have: enough for each job but every eighth.
const PERCENT_OF_ONE: f64 = 50.0;

#[test]
fn a_hard_reservation_that_makes_uneven_jobs_late_is_released() {
    if !can_run("a_hard_reservation_that_makes_uneven_jobs_late_is_released") {
        return;
    }
    let folder = Folder::new();
    let mut python = Command::new("python3");
    python.args(["-c", include_str!("uneven.py")]);
    let uneven = Mortal::spawn(&mut python);
    let cpus = available_parallelism().map_or(1, usize::from) as f64;
    let mut attach = folder.keep("attach");
    attach
        .args(["--quiet", "--hard", "--cap"])
        .arg(format!("{:.3}", PERCENT_OF_ONE / cpus))
        .arg(uneven.id().to_string());
    let mut onbeat = Mortal::spawn(&mut attach);
    let is_told = |what: &str, why: &str| {
        let log = folder.log();
        let mut of_it = log.iter().filter(|entry| entry["tid"] == uneven.id());
        of_it.any(|entry| entry["what"] == what && entry["why"].to_string().contains(why))
    };
    eventually("a reservation", || is_told("reserved", "").then_some(()));
    eventually("its release", || {
        is_told("released", "jobs late: it goes without").then_some(())
    });
    onbeat.signal(libc::SIGTERM);
    assert_eq!(onbeat.status(), Some(0));
    assert_eq!(folder.state_files(), 0);
}
