//! Threads with a real-time priority that leave nothing of a CPU: the service goes on.

use std::process::Command;
use std::sync::mpsc;

use onbeat_act::attributes::{Attributes, Policy};

use crate::PATIENCE;
use crate::common::{Mortal, eventually, needs_root};
use crate::machine::{ALICE, Machine, tids};

/// One CPU that this process may run on.
fn a_cpu() -> String {
    let status = std::fs::read_to_string("/proc/self/status").expect("we live");
    let list = status
        .lines()
        .find_map(|line| line.strip_prefix("Cpus_allowed_list:"))
        .expect("every kernel tells it");
    let cpu = list.trim().rsplit([',', '-']).next();
    cpu.expect("there is one").to_owned()
}

#[test]
fn threads_of_the_greatest_priority_that_is_granted_do_not_keep_the_service_from_answering() {
    needs_root!();
    let cpu = a_cpu();
    let mut machine = Machine::bus();
    machine.configure("");
    assert!(machine.start_through(Command::new("taskset").args(["-c", &cpu])));
    let mut alice = machine.client(ALICE);
    let greatest = alice.told("properties")["MaxRealtimePriority"].clone();
    // As if clients with pauses took turns in them.
    let mut hog = Command::new("taskset");
    hog.args(["-c", &cpu, "chrt", "--rr", &greatest.to_string()])
        .args(["sh", "-c", "while :; do :; done"]);
    let hog = Mortal::spawn(&mut hog);
    eventually("the hog", || {
        let own = Attributes::get(hog.id()).ok()?;
        matches!(own.policy, Policy::RoundRobin(_)).then_some(())
    });
    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || {
        let figures = alice.told("statistics");
        // The caller may not wait for it any more.
        let _ = tell.send(figures["threads"].clone());
    });
    let answer = told.recv_timeout(PATIENCE);
    drop(hog);
    assert_eq!(answer.expect("an answer"), 0);
    // None goes first but the loop's own thread, the one that has it give way and the one that
    // watches priorities: any client can keep the threads that talk to the bus busy.
    let service = machine.service_pid();
    let goes_first =
        |tid: &u32| Attributes::get(*tid).is_ok_and(|own| !matches!(own.policy, Policy::Other(_)));
    // It gave way itself if the hog held it up for long.
    let first = eventually("three that go first", || {
        let first: Vec<u32> = tids(service).into_iter().filter(goes_first).collect();
        <[u32; 3]>::try_from(first).ok()
    });
    assert!(first.contains(&service));
    let mut others: Vec<String> = first
        .into_iter()
        .filter(|&tid| tid != service)
        .map(|tid| {
            let name = std::fs::read_to_string(format!("/proc/{service}/task/{tid}/comm"));
            name.expect("it is there")
        })
        .collect();
    others.sort();
    assert_eq!(others, ["gives-way\n", "watcher\n"]);
}
