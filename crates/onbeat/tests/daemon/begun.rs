//! Programs that a rule names have their user's protection from their first instructions on.

use crate::prelude::*;

/// An application is young for a second.
const YOUNG: Duration = Duration::from_secs(1);

pub(crate) const NO_SCAN: &str = "shipped-rules = false\nscan = \"3600s\"\n";

/// A service with a rule for the shell `program`, which no scan finds. Each test has another name:
/// the services of tests that run at the same time hear of each other's programs.
fn machine(program: &str) -> Machine {
    let rule = format!("[[rule]]\nname = \"it\"\nprogram = \"{program}\"\n");
    let machine = Machine::with(&format!("{NO_SCAN}{rule}"));
    copy_program("/bin/sh", machine.path(program));
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
    let machine = machine("reloaded");
    let batch = one_that_goes_first(&machine, "reloaded", ALICE);
    until("its former scheduling", || is_ordinary(batch.id()));
    // A reload names other programs.
    machine.configure(NO_SCAN);
    machine.client(ROOT).done("reload");
    let other = Mortal::spawn(&mut command(&machine, "reloaded", ALICE));
    let began = Instant::now();
    while began.elapsed() < YOUNG {
        assert!(is_ordinary(other.id()));
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_storm_of_named_programs_takes_no_more_than_a_quota_and_hides_no_other_users() {
    let machine = machine("stormy");
    // Programs without end, each of which a rule names and each of which computes.
    let script = "while :; do \"$0\" -c 'i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done'; done";
    let storms = [(); 4].map(|()| {
        let mut storm = machine.command(ALICE, Path::new("/bin/sh"));
        storm.arg("-c").arg(script).arg(machine.path("stormy"));
        Mortal::spawn(storm.stdout(Stdio::null()))
    });
    for _ in 0..3 {
        drop(one_that_goes_first(&machine, "stormy", BOB));
    }
    let mut alice = machine.client(ALICE);
    let tasks = alice.figure("own-tasks").as_u64();
    assert!(tasks <= Some(64), "{tasks:?}");
    drop(storms);
    until("a ledger without hers", || alice.figure("own-tasks") == 0);
}

#[test]
fn when_the_service_is_killed_its_guard_gives_back_what_a_protected_program_had() {
    let mut machine = machine("orphaned");
    let other = machine.sleeper(ALICE);
    let mut alice = machine.client(ALICE);
    alice.nice(&other, -5);
    let protected = one_that_goes_first(&machine, "orphaned", BOB);
    machine.end(libc::SIGKILL);
    until("its former scheduling", || is_ordinary(protected.id()));
    // A client of RealtimeKit asks once, and keeps what it has for the next service.
    assert_eq!(nice_of(other.id()), Some(-5));
    machine.start();
    has(
        machine.log(),
        &["keeps the priority that an earlier onbeat gave it"],
    );
    assert_eq!(machine.end(libc::SIGTERM), Some(0));
    assert!(is_ordinary(other.id()));
}
