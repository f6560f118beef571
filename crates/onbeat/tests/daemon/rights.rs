//! The rights of users: a user's own tasks, within their quotas, for callers from anywhere.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use onbeat_act::attributes::Attributes;

use crate::common::{Mortal, eventually, needs_root};
use crate::copied::copy_program;
use crate::machine::{ALICE, BOB, Machine, ROOT, as_itself, is_ordinary, is_reserved, tids};
use crate::realtimekit::that_asks;

/// A tenth of a CPU.
const TENTH: &str = "1000000 10000000 10000000";

#[test]
fn nobody_touches_another_users_tasks_and_root_may() {
    needs_root!();
    let machine = Machine::new();
    let sleeper = machine.sleeper(ALICE);
    let tid = sleeper.id();
    let [mut alice, mut bob, mut root] = [ALICE, BOB, ROOT].map(|uid| machine.client(uid));
    for line in [
        format!("track {tid}"),
        format!("reserve {tid} {TENTH}"),
        format!("release {tid}"),
        format!("untrack {tid}"),
    ] {
        assert_eq!(bob.refused(&line), "NotPermitted");
    }
    assert_eq!(alice.refused(&format!("reserve 1 {TENTH}")), "NotPermitted");
    assert_eq!(alice.refused("reload"), "NotPermitted");
    alice.done(&format!("reserve {tid} {TENTH}"));
    assert!(bob.told("list").as_array().unwrap().is_empty());
    assert_eq!(root.told("list")[0]["thread"], tid);
    root.done(&format!("release {tid}"));
    eventually("the way back", || is_ordinary(tid).then_some(()));
}

#[test]
fn a_program_with_the_rights_of_two_users_is_nobodys() {
    needs_root!();
    let machine = Machine::new();
    // The real user is Alice, the effective one root: as a set-user-ID program has it.
    let two = Mortal::spawn(Command::new("setpriv").args([
        "--ruid",
        &ALICE.to_string(),
        "sleep",
        "1000",
    ]));
    eventually("the program", || {
        let comm = std::fs::read_to_string(format!("/proc/{}/comm", two.id())).ok()?;
        (comm.trim() == "sleep").then_some(())
    });
    let mut alice = machine.client(ALICE);
    assert_eq!(
        alice.refused(&format!("track {}", two.id())),
        "NotPermitted"
    );
    assert_eq!(
        alice.refused(&format!("reserve {} {TENTH}", two.id())),
        "NotPermitted"
    );
    assert!(is_ordinary(two.id()));
}

/// A shell of Alice's that waits for a line, and then becomes `program`. It may have a real-time
/// priority.
fn shell_that_becomes(machine: &Machine, program: &Path) -> Mortal {
    let mut command = machine.command(ALICE, Path::new("prlimit"));
    command
        .arg("--rttime=150000:150000")
        .args(["sh", "-c", "read go; exec \"$0\" 1000"])
        .arg(program)
        .stdin(Stdio::piped());
    as_itself(Mortal::spawn(&mut command), "sh")
}

/// Whether the task is as it was when it started.
fn has_nothing(tid: u32) -> bool {
    is_ordinary(tid) && Attributes::get(tid).is_ok_and(|now| now.nice() == Some(0))
}

/// A program that sleeps, root's, and with his rights: as passwd and su are.
fn set_user_id(machine: &Machine) -> PathBuf {
    let program = machine.path("set-user-id");
    copy_program("/bin/sleep", &program);
    let mode = std::fs::Permissions::from_mode(0o4755);
    std::fs::set_permissions(&program, mode).unwrap();
    program
}

/// Whether the program that Alice executed has root's rights.
fn is_roots(tid: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{tid}/status"));
    status.is_ok_and(|status| status.contains(&format!("\nUid:\t{ALICE}\t0\t")))
}

#[test]
fn who_executes_another_users_program_loses_what_was_asked_for_him() {
    needs_root!();
    let machine = Machine::new();
    let program = set_user_id(&machine);
    let shells = [0; 4].map(|_| shell_that_becomes(&machine, &program));
    let [mut tracked, mut reserved, mut reniced, mut real_time] = shells;
    let mut alice = machine.client(ALICE);
    alice.done(&format!("track {}", tracked.id()));
    alice.done(&format!("reserve {} {TENTH}", reserved.id()));
    alice.done(&format!("nice {0} {0} -5", reniced.id()));
    alice.done(&format!("realtime {0} {0} 10", real_time.id()));
    assert_eq!(alice.told("statistics")["own-tasks"], 4);
    for shell in [&mut tracked, &mut reserved, &mut reniced, &mut real_time] {
        let mut input = shell.0.stdin.take().unwrap();
        writeln!(input, "go").unwrap();
    }
    eventually("the way back", || {
        let others = [&reserved, &reniced, &real_time].map(Mortal::id);
        (is_roots(tracked.id())
            && others
                .into_iter()
                .all(|tid| is_roots(tid) && has_nothing(tid)))
        .then_some(())
    });
    eventually("an empty book", || {
        (alice.told("statistics")["own-tasks"] == 0).then_some(())
    });
}

/// It takes over the number of its process's first thread.
#[test]
fn who_executes_it_on_another_thread_than_the_first_loses_his_priority_too() {
    needs_root!();
    let machine = Machine::new();
    let program = set_user_id(&machine);
    let mut alice = machine.client(ALICE);
    for is_nice in [false, true] {
        let mut command = machine.command(ALICE, &machine.path("audio"));
        command.arg("become").arg(&program).stdin(Stdio::piped());
        let (mut process, thread) = that_asks(&machine, &mut command);
        if is_nice {
            alice.done(&format!("nice {} {thread} -5", process.id()));
        }
        drop(process.0.stdin.take());
        eventually("the way back", || {
            (is_roots(process.id()) && has_nothing(process.id())).then_some(())
        });
    }
}

#[test]
fn what_makes_no_sense_is_told_so() {
    needs_root!();
    let machine = Machine::new();
    let sleeper = machine.sleeper(ALICE);
    let tid = sleeper.id();
    let mut alice = machine.client(ALICE);
    for times in [
        "0 10000000 10000000",
        "11000000 10000000 10000000",
        "1 2 1",
        "0 0 0",
    ] {
        assert_eq!(alice.refused(&format!("reserve {tid} {times}")), "Invalid");
    }
    // The kernel takes no runtime below 1024 ns; root is under no quota that would say so before.
    let mut root = machine.client(ROOT);
    assert_eq!(
        root.refused(&format!("reserve {tid} 1000 10000000 10000000")),
        "Failed"
    );
    for nobody in [0, u32::MAX] {
        assert_eq!(alice.refused(&format!("track {nobody}")), "NoSuchTask");
    }
    assert!(is_ordinary(tid));
}

#[test]
fn a_users_quota_is_for_all_his_connections_together_and_nobody_elses() {
    needs_root!();
    let machine = Machine::new();
    let his: Vec<_> = (0..3).map(|_| machine.sleeper(ALICE)).collect();
    let other = machine.sleeper(BOB);
    let [mut first, mut second, mut bob] = [ALICE, ALICE, BOB].map(|uid| machine.client(uid));
    let quarter = "5000000 20000000 20000000";
    first.done(&format!("reserve {} {quarter}", his[0].id()));
    second.done(&format!("reserve {} {quarter}", his[1].id()));
    let third = format!("reserve {} {TENTH}", his[2].id());
    assert_eq!(first.refused(&third), "OverQuota");
    assert_eq!(second.refused(&third), "OverQuota");
    let short = format!("reserve {} 100000 900000 900000", his[2].id());
    assert_eq!(first.refused(&short), "OverQuota");
    bob.done(&format!("reserve {} {quarter}", other.id()));
    first.die();
    eventually("room again", || {
        (second.ask(&third) == "\"ok\"").then_some(())
    });
    assert!(is_reserved(his[1].id()) && is_reserved(his[2].id()));
    let figures = second.told("statistics");
    let charged = figures["own-bandwidth"].as_f64().unwrap();
    assert!((charged - 0.35).abs() < 1e-6, "{figures}");
    assert_eq!(figures["own-tasks"], 2);
}

#[test]
fn a_program_with_too_many_threads_is_tracked_as_far_as_its_owners_quota_goes() {
    needs_root!();
    let machine = Machine::new();
    let threads: Vec<&str> = std::iter::repeat_n("random:1000000/1", 90).collect();
    let workload = machine.workload(ALICE, &threads);
    let sleeper = machine.sleeper(ALICE);
    let [mut alice, mut bob] = [ALICE, BOB].map(|uid| machine.client(uid));
    alice.done(&format!("track {}", workload.id()));
    assert_eq!(tids(workload.id()).len(), 91);
    let figures = eventually("the rest to be turned away", || {
        let figures = alice.told("statistics");
        (figures["turned-away"] == 91 - 64).then_some(figures)
    });
    assert_eq!(figures["own-tasks"], 64, "{figures}");
    assert_eq!(
        alice.refused(&format!("track {}", sleeper.id())),
        "OverQuota"
    );
    let own = machine.sleeper(BOB);
    bob.done(&format!("track {}", own.id()));
    drop(workload);
    eventually("room again", || {
        (alice.ask(&format!("track {}", sleeper.id())) == "\"ok\"").then_some(())
    });
}
