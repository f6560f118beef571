//! The process without rights that parses programs' files for the service.

use std::fs;

use crate::common::{Mortal, can_run, eventually};
use crate::compiled::compiled;
use crate::copied::copy_program;
use crate::machine::{ALICE, Machine, as_itself};
use crate::parsers::{parsers_of, status_field};

/// The hard limit of the process that has this name.
fn hard_limit(pid: u32, name: &str) -> Option<u64> {
    let limits = fs::read_to_string(format!("/proc/{pid}/limits")).ok()?;
    let limit = limits.lines().find_map(|line| line.strip_prefix(name))?;
    limit.split_whitespace().nth(1)?.parse().ok()
}

#[test]
fn programs_files_are_parsed_in_a_process_without_rights_that_is_replaced_when_it_dies() {
    if !can_run(
        "programs_files_are_parsed_in_a_process_without_rights_that_is_replaced_when_it_dies",
    ) {
        return;
    }
    let mut machine = Machine::new();
    let (supervisor, worker) = parsers_of(machine.service_pid());
    assert_eq!(hard_limit(worker, "Max cpu time"), Some(5));
    assert!(hard_limit(worker, "Max address space").is_some());

    let program = machine.path("marker");
    compiled("marker", &program);
    let mut alice = machine.client(ALICE);
    let mut track = |name: &str| {
        // A file of its own, which no worker has parsed yet.
        let path = machine.path(name);
        copy_program(&program, &path);
        let mut command = machine.command(ALICE, &path);
        let process = Mortal::spawn(command.args(["1000000", "20000", "1000"]));
        let process = as_itself(process, name);
        alice.done(&format!("track {}", process.id()));
        process
    };
    let heard = |count: usize| {
        eventually("marks", || {
            let log = machine.log();
            let marked = log.matches("it says where its jobs are");
            (marked.count() >= count).then_some(())
        });
    };
    let _first = track("first");
    heard(1);
    // SAFETY: the worker is a process that this test's service started.
    unsafe { libc::kill(worker.cast_signed(), libc::SIGKILL) };
    eventually("another worker", || {
        let children = fs::read_to_string(format!("/proc/{supervisor}/task/{supervisor}/children"));
        let next: u32 = children.ok()?.split_whitespace().next()?.parse().ok()?;
        (next != worker).then_some(())
    });
    let _second = track("second");
    heard(2);
    let (_, worker) = parsers_of(machine.service_pid());
    machine.end(libc::SIGKILL);
    eventually("the end of both", || {
        let is_over = |pid| status_field(pid, "State").is_none_or(|state| state.starts_with('Z'));
        (is_over(supervisor) && is_over(worker)).then_some(())
    });
}
