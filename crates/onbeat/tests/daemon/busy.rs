//! Threads with a real-time priority that leave nothing of a CPU: the service goes on.

use std::sync::mpsc;

use crate::prelude::*;

/// One CPU that this process may run on.
fn a_cpu() -> String {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let list = status.split("Cpus_allowed_list:").nth(1).unwrap();
    let list = list.lines().next().unwrap().trim();
    list.rsplit([',', '-']).next().unwrap().to_owned()
}

#[test]
fn threads_of_the_greatest_priority_that_is_granted_do_not_keep_the_service_from_answering() {
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
    until("the hog", || {
        matches!(policy(hog.id()), Policy::RoundRobin(_))
    });
    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || {
        // The caller may not wait for it any more.
        let _ = tell.send(alice.figure("threads"));
    });
    let answer = told.recv_timeout(PATIENCE);
    drop(hog);
    assert_eq!(answer.expect("an answer"), 0);
    // None goes first but the loop's own thread, the one that has it give way and the one that
    // watches priorities: any client can keep the threads that talk to the bus busy.
    let service = machine.service_pid();
    let goes_first = |tid: &u32| !matches!(policy(*tid), Policy::Other(_));
    // It gave way itself if the hog held it up for long.
    until("three that go first", || {
        let first: Vec<u32> = tids(service).into_iter().filter(goes_first).collect();
        first.len() == 3 && first.contains(&service)
    });
}
