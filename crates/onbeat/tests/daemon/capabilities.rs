//! The service under exactly the capabilities that its unit gives it, and under each of them but
//! one.

use std::os::unix::fs::{PermissionsExt, chown, symlink};

use crate::compiled::compiled;
use crate::prelude::*;

/// The program that the rule names, and no other test.
const RULED: &str = "named-by-a-rule";

/// The capabilities of the unit, as setpriv calls them.
fn of_the_unit() -> Vec<String> {
    let unit = include_str!("../../../../packaging/systemd/onbeat.service");
    let mut lines = unit.lines();
    let set = lines.find_map(|line| line.strip_prefix("CapabilityBoundingSet="));
    let words = set.unwrap().split_whitespace();
    words
        .map(|word| word.trim_start_matches("CAP_").to_lowercase())
        .collect()
}

/// The abilities of the service under some capabilities.
#[derive(Debug, PartialEq, Eq)]
enum Able {
    /// Everything.
    All,
    /// It does not even start.
    NotToStart,
    /// It cannot reserve.
    NotToReserve,
}

/// Starts the service with these capabilities and no others, if it starts then.
fn starts(machine: &mut Machine, capabilities: &[String]) -> bool {
    let set = format!("-all,+{}", capabilities.join(",+"));
    machine.start_through(Command::new("setpriv").args(["--bounding-set", &set]))
}

fn able(capabilities: &[String]) -> Able {
    let mut machine = Machine::bus();
    let program = machine.path(RULED);
    copy_program(machine.path("workload"), &program);
    machine.configure(&machine.rule("").replace("workload", RULED));
    if !starts(&mut machine, capabilities) {
        return Able::NotToStart;
    }
    let sleeper = machine.sleeper(ALICE);
    let mut alice = machine.client(ALICE);
    let answer = alice.ask(&format!("reserve {} {TENTH}", sleeper.id()));
    if answer != "\"ok\"" {
        has(&answer, &["NotPermitted"]);
        return Able::NotToReserve;
    }
    // By another name, so that only its path tells which program it is.
    let link = machine.path("by-another-name");
    symlink(&program, &link).unwrap();
    let start = |path: &Path, name| {
        let mut command = machine.command(ALICE, path);
        let command = command.arg("random:1000000/1").stdout(Stdio::null());
        as_itself(Mortal::spawn(command), name)
    };
    let process = start(&link, "by-another-name");
    let other = start(&program, RULED);
    for process in [&other, &process] {
        machine.says(&format!("({}): tracked by rule", process.id()));
    }
    // What loaded the tracer was given up, by all threads.
    for tid in tids(machine.service_pid()) {
        let held = fs::read_to_string(format!("/proc/{tid}/status")).unwrap();
        has(held, &["CapPrm:\t0000000000800000\n"]);
    }
    Able::All
}

#[test]
fn that_many_capabilities_are_needed_and_no_more() {
    let all = of_the_unit();
    assert_eq!(able(&all), Able::All);
    let lacks = [
        ("sys_nice", Able::NotToReserve),
        ("bpf", Able::NotToStart),
        ("perfmon", Able::NotToStart),
    ];
    assert_eq!(all.len(), lacks.len(), "{all:?}");
    for (one, lack) in lacks {
        let rest: Vec<String> = all.iter().filter(|other| *other != one).cloned().collect();
        assert_eq!(rest.len(), all.len() - 1, "{one}");
        assert_eq!(able(&rest), lack, "without {one}");
    }
}

#[test]
fn marks_are_heard_with_those_capabilities_also_from_a_file_and_namespaces_of_the_users_own() {
    let mut machine = Machine::bus();
    machine.configure("");
    assert!(starts(&mut machine, &of_the_unit()));
    let private = machine.home(ALICE);
    let program = private.join("marker");
    compiled("marker", &program);
    chown(&program, Some(ALICE), Some(ALICE)).unwrap();
    for path in [&private, &program] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o700)).unwrap();
    }
    let mut alice = machine.client(ALICE);
    let mut command = machine.command(ALICE, Path::new("/usr/bin/unshare"));
    command.args(["--user", "--map-root-user", "--mount"]);
    command.args(["--pid", "--kill-child"]).arg(&program);
    let outside = Mortal::spawn(command.args(["1000000", "20000", "1000"]));
    let marker = child_of(outside.id(), "marker");
    alice.done(&format!("track {marker}"));
    machine.says("it marks its jobs");
}
