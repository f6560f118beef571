//! The bus goes away: no client could ask the service any more, nor be heard leaving.

use crate::common::{eventually, needs_root};
use crate::machine::{ALICE, Machine, ROOT, is_ordinary, is_reserved, reserved_thread};
use crate::own_state::state_files;
use crate::realtimekit::audio;

#[test]
fn a_service_that_loses_the_bus_gives_everything_back_and_ends_with_failure() {
    needs_root!();
    let mut machine = Machine::new();
    let sleeper = machine.sleeper(ALICE);
    let mut alice = machine.client(ALICE);
    alice.done(&format!(
        "reserve {} 1000000 10000000 10000000",
        sleeper.id()
    ));
    let (_audio, raised) = audio(&machine, "beat");
    eventually("its reservation", || is_reserved(raised).then_some(()));
    machine.end_bus();
    let code = machine.ended();
    assert!(code.is_some_and(|code| code != 0), "{code:?}");
    let log = machine.log();
    assert!(log.contains("the system bus is gone"), "{log}");
    assert!(
        is_ordinary(sleeper.id()) && is_ordinary(raised),
        "{}",
        machine.log()
    );
    assert_eq!(state_files(&machine.state()), 0);
    // As systemd would.
    machine.start_bus();
    machine.start();
    machine.client(ROOT).done(&format!(
        "reserve {} 1000000 10000000 10000000",
        sleeper.id()
    ));
}

#[test]
fn without_a_bus_the_service_keeps_what_its_rules_name() {
    needs_root!();
    let mut machine = Machine::bus();
    machine.end_bus();
    machine.flags = vec!["--no-bus"];
    let program = machine.path("workload");
    machine.configure(&format!(
        "scan = \"50ms\"\n[[rule]]\nname = \"mine\"\nprogram = \"{}\"\n",
        program.display()
    ));
    machine.start();
    let workload = machine.workload(ALICE, &["beat:20000/1000"]);
    let reserved = reserved_thread(workload.id());
    assert_eq!(machine.end(libc::SIGTERM), Some(0), "{}", machine.log());
    assert!(is_ordinary(reserved), "{}", machine.log());
    assert_eq!(state_files(&machine.state()), 0);
}

#[test]
fn a_service_that_is_ended_while_the_bus_hangs_gives_everything_back() {
    needs_root!();
    let machine = Machine::new();
    let sleeper = machine.sleeper(ALICE);
    let mut alice = machine.client(ALICE);
    alice.done(&format!(
        "reserve {} 1000000 10000000 10000000",
        sleeper.id()
    ));
    machine.signal_bus(libc::SIGSTOP);
    machine.signal(libc::SIGTERM);
    eventually("what it had before", || {
        is_ordinary(sleeper.id()).then_some(())
    });
    machine.signal_bus(libc::SIGCONT);
}
