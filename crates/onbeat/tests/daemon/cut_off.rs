//! The bus goes away: no client could ask the service any more, nor be heard leaving.

use crate::prelude::*;
use crate::realtimekit::audio;

#[test]
fn a_service_that_loses_the_bus_gives_everything_back_and_ends_with_failure() {
    let mut machine = Machine::new();
    let sleeper = machine.sleeper(ALICE);
    let mut alice = machine.client(ALICE);
    alice.reserve(sleeper.id());
    let (_audio, raised) = audio(&machine, "beat");
    until("its reservation", || is_reserved(raised));
    machine.end_bus();
    let code = machine.ended();
    assert!(code.is_some_and(|code| code != 0), "{code:?}");
    has(machine.log(), &["the system bus is gone"]);
    assert!(is_ordinary(sleeper.id()) && is_ordinary(raised));
    assert_eq!(state_files(&machine.state()), 0);
    // As systemd would.
    machine.start_bus();
    machine.start();
    machine.client(ROOT).reserve(sleeper.id());
}

#[test]
fn without_a_bus_the_service_keeps_what_its_rules_name() {
    let mut machine = Machine::bus();
    machine.end_bus();
    machine.flags = vec!["--no-bus"];
    machine.configure(&machine.rule(""));
    machine.start();
    let workload = machine.workload(ALICE, &["beat:20000/1000"]);
    let reserved = reserved_thread(workload.id());
    assert_eq!(machine.end(libc::SIGTERM), Some(0), "{}", machine.log());
    assert!(is_ordinary(reserved), "{}", machine.log());
    assert_eq!(state_files(&machine.state()), 0);
}

#[test]
fn a_service_that_is_ended_while_the_bus_hangs_gives_everything_back() {
    let machine = Machine::new();
    let sleeper = machine.sleeper(ALICE);
    let mut alice = machine.client(ALICE);
    alice.reserve(sleeper.id());
    machine.signal_bus(libc::SIGSTOP);
    machine.signal(libc::SIGTERM);
    until("what it had before", || is_ordinary(sleeper.id()));
    machine.signal_bus(libc::SIGCONT);
}
