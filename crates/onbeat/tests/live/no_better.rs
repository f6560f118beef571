//! Reservations without which a program waits no longer.

use std::thread::available_parallelism;

use crate::*;

#[test]
fn a_hard_reservation_that_a_cap_makes_too_small_for_each_job_is_released() {
    let folder = Folder::new();
    // So that it waits little without a reservation, whatever else the machine does.
    let mut niced = Command::new("nice");
    let program = [
        "-n",
        "-20",
        "python3",
        "-c",
        include_str!("jobs.py"),
        "2",
        "2",
    ];
    let program = Mortal::spawn(niced.args(program));
    let cpus = available_parallelism().map_or(1, usize::from) as f64;
    let cap = format!("{:.3}", 10.0 / cpus);
    let options = ["--quiet", "--hard", "--cap", &cap];
    let mut onbeat = folder.attach(program.id(), &options);
    let is_told = |what: &str, why: &str| {
        let log = folder.log();
        let mut of_it = log.iter().filter(|entry| entry["tid"] == program.id());
        of_it.any(|entry| entry["what"] == what && entry["why"].to_string().contains(why))
    };
    until("a reservation", || is_told("reserved", ""));
    // A comparison that the machine's other load decides is followed by another one.
    within(Duration::from_secs(180), "its release", || {
        is_told("released", "waited no longer without").then_some(())
    });
    assert_eq!(onbeat.ends(libc::SIGTERM), Some(0));
    assert_eq!(folder.state_files(), 0);
}
