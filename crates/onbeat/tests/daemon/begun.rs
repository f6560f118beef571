//! Programs that a rule names have their user's protection from their first instructions on.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use onbeat_act::attributes::Attributes;

use crate::common::{Mortal, eventually, needs_root};
use crate::copied::copy_program;
use crate::machine::{ALICE, BOB, Machine, is_ordinary};

/// An application is young for a second.
const YOUNG: Duration = Duration::from_secs(1);

/// A service with a rule for the shell `program`, which no scan finds. Each test has another name:
/// the services of tests that run at the same time hear of each other's programs.
fn machine(program: &str) -> Machine {
    let mut machine = Machine::bus();
    copy_program("/bin/sh", machine.path(program));
    machine.configure(&format!(
        "shipped-rules = false\nscan = \"3600s\"\n\
         [[rule]]\nname = \"it\"\nprogram = \"{program}\"\n"
    ));
    machine.start();
    machine
}

/// The shell, which computes without end.
fn command(machine: &Machine, program: &str, uid: u32) -> Command {
    let mut command = machine.command(uid, &machine.path(program));
    command.arg("-c").arg("while :; do :; done");
    command
}

fn goes_first(pid: u32) -> bool {
    Attributes::get(pid).is_ok_and(|now| now.nice() == Some(-20))
}

/// A program that computes, while it goes before all ordinary ones. It does so for a second at
/// most, which a machine that stalls may spend elsewhere: then there is another one.
fn one_that_goes_first(machine: &Machine, program: &str, uid: u32) -> Mortal {
    eventually("a program that goes first", || {
        let process = Mortal::spawn(&mut command(machine, program, uid));
        let began = Instant::now();
        while began.elapsed() < YOUNG {
            if goes_first(process.id()) {
                return Some(process);
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        None
    })
}

#[test]
fn a_program_that_a_rule_names_goes_first_before_any_scan_and_is_ordinary_again_later() {
    needs_root!();
    let machine = machine("reloaded");
    let batch = one_that_goes_first(&machine, "reloaded", ALICE);
    eventually("its former scheduling", || {
        is_ordinary(batch.id()).then_some(())
    });
    // A reload names other programs.
    machine.configure("shipped-rules = false\nscan = \"3600s\"\n");
    machine.client(crate::machine::ROOT).done("reload");
    let other = Mortal::spawn(&mut command(&machine, "reloaded", ALICE));
    let began = Instant::now();
    while began.elapsed() < YOUNG {
        assert!(is_ordinary(other.id()));
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_storm_of_named_programs_takes_no_more_than_a_quota_and_hides_no_other_users() {
    needs_root!();
    let machine = machine("stormy");
    // Programs without end, each of which a rule names and each of which computes.
    let script = "while :; do \"$0\" -c 'i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done'; done";
    let storms: Vec<Mortal> = (0..4)
        .map(|_| {
            let mut storm = machine.command(ALICE, Path::new("/bin/sh"));
            storm.arg("-c").arg(script).arg(machine.path("stormy"));
            Mortal::spawn(storm.stdout(Stdio::null()))
        })
        .collect();
    for _ in 0..3 {
        drop(one_that_goes_first(&machine, "stormy", BOB));
    }
    let mut alice = machine.client(ALICE);
    let told = alice.told("statistics");
    assert!(
        told["own-tasks"].as_u64().is_some_and(|tasks| tasks <= 64),
        "{told}"
    );
    drop(storms);
    eventually("a ledger without hers", || {
        (alice.told("statistics")["own-tasks"] == 0).then_some(())
    });
}

#[test]
fn when_the_service_is_killed_its_guard_gives_back_what_a_protected_program_had() {
    needs_root!();
    let mut machine = machine("orphaned");
    let other = machine.sleeper(ALICE);
    let mut alice = machine.client(ALICE);
    alice.done(&format!("nice {0} {0} -5", other.id()));
    let protected = one_that_goes_first(&machine, "orphaned", BOB);
    machine.end(libc::SIGKILL);
    eventually("its former scheduling", || {
        is_ordinary(protected.id()).then_some(())
    });
    // A client of RealtimeKit asks once, and keeps what it has for the next service.
    assert_eq!(Attributes::get(other.id()).unwrap().nice(), Some(-5));
    machine.start();
    assert!(
        machine
            .log()
            .contains("keeps the priority that an earlier onbeat gave it")
    );
    assert_eq!(machine.end(libc::SIGTERM), Some(0));
    assert!(is_ordinary(other.id()));
}
