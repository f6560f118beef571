//! The service under exactly the capabilities that its unit gives it, and under each of them but
//! one.

use std::fs::Permissions;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::common::{Mortal, eventually, needs_root};
use crate::compiled::compiled;
use crate::copied::copy_program;
use crate::machine::{ALICE, Machine, as_itself, tids};

/// A tenth of a CPU.
const TENTH: &str = "1000000 10000000 10000000";
/// The program that the rule names, and no other test.
const RULED: &str = "named-by-a-rule";

/// The capabilities of the unit, as setpriv calls them.
pub(crate) fn of_the_unit() -> Vec<String> {
    let unit = include_str!("../../../../packaging/systemd/onbeat.service");
    let line = unit
        .lines()
        .find_map(|line| line.strip_prefix("CapabilityBoundingSet="));
    let words = line.expect("the unit bounds them").split_whitespace();
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
    let set = capabilities
        .iter()
        .fold("-all".to_owned(), |set, one| format!("{set},+{one}"));
    machine.start_through(Command::new("setpriv").args(["--bounding-set", &set]))
}

fn able(capabilities: &[String]) -> Able {
    let mut machine = Machine::bus();
    let program = machine.path(RULED);
    copy_program(machine.path("workload"), &program);
    machine.configure(&format!(
        "scan = \"20ms\"\n[[rule]]\nprogram = \"{}\"\n",
        program.display()
    ));
    if !starts(&mut machine, capabilities) {
        return Able::NotToStart;
    }
    let sleeper = machine.sleeper(ALICE);
    let mut alice = machine.client(ALICE);
    let answer = alice.ask(&format!("reserve {} {TENTH}", sleeper.id()));
    if answer != "\"ok\"" {
        assert!(answer.contains("NotPermitted"), "{answer}");
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
    let found = |pid: u32| machine.log().contains(&format!("({pid}): tracked by rule"));
    eventually("the rule", || found(other.id()).then_some(()));
    eventually("its program", || found(process.id()).then_some(()));
    // What loaded the tracer was given up, by all threads.
    for tid in tids(machine.service_pid()) {
        let status = std::fs::read_to_string(format!("/proc/{tid}/status"));
        let held = status.unwrap();
        assert!(held.contains("CapPrm:\t0000000000800000\n"), "{held}");
    }
    Able::All
}

#[test]
fn that_many_capabilities_are_needed_and_no_more() {
    needs_root!();
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
    needs_root!();
    let mut machine = Machine::bus();
    machine.configure("");
    assert!(starts(&mut machine, &of_the_unit()));
    let private = machine.path("private");
    std::fs::create_dir(&private).unwrap();
    let program = private.join("marker");
    compiled("marker", &program);
    for path in [&private, &program] {
        chown(path, Some(ALICE), Some(ALICE)).unwrap();
        std::fs::set_permissions(path, Permissions::from_mode(0o700)).unwrap();
    }
    let mut alice = machine.client(ALICE);
    let mut command = machine.command(ALICE, Path::new("/usr/bin/unshare"));
    command.args([
        "--user",
        "--map-root-user",
        "--mount",
        "--pid",
        "--kill-child",
    ]);
    let outside = Mortal::spawn(command.arg(&program).args(["1000000", "20000", "1000"]));
    let children = format!("/proc/{0}/task/{0}/children", outside.id());
    let marker = eventually("the program", || {
        let child = std::fs::read_to_string(&children).ok()?;
        let child = child.split_whitespace().next()?.parse::<u32>().ok()?;
        let name = std::fs::read_to_string(format!("/proc/{child}/comm")).ok()?;
        (name == "marker\n").then_some(child)
    });
    alice.done(&format!("track {marker}"));
    eventually("marks", || {
        let heard = machine.log().contains("it marks its jobs");
        heard.then_some(())
    });
}
