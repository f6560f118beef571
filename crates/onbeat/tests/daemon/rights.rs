//! The rights of users: a user's own tasks, within their quotas, for callers from anywhere.

use crate::prelude::*;
use crate::realtimekit::that_asks;

#[test]
fn nobody_touches_another_users_tasks_and_root_may() {
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
    alice.reserve(tid);
    assert!(bob.list().is_empty() && root.listed(tid).is_some());
    root.done(&format!("release {tid}"));
    goes_back(tid);
}

#[test]
fn a_program_with_the_rights_of_two_users_is_nobodys() {
    let machine = Machine::new();
    // The real user is Alice, the effective one root: as a set-user-ID program has it.
    let mut two = Command::new("setpriv");
    let two = two.args(["--ruid", &ALICE.to_string(), "sleep", "1000"]);
    let two = as_itself(Mortal::spawn(two), "sleep");
    let mut alice = machine.client(ALICE);
    for line in [
        format!("track {}", two.id()),
        format!("reserve {} {TENTH}", two.id()),
    ] {
        assert_eq!(alice.refused(&line), "NotPermitted");
    }
    assert!(is_ordinary(two.id()));
}

/// A shell of Alice's that waits for a line, and then becomes `program`. It may have a real-time
/// priority.
fn shell_that_becomes(machine: &Machine, program: &Path) -> Mortal {
    let mut command = machine.limited(ALICE, "sh");
    command
        .args(["-c", "read go; exec \"$0\" 1000"])
        .arg(program)
        .stdin(Stdio::piped());
    as_itself(Mortal::spawn(&mut command), "sh")
}

/// Whether the task is as it was when it started.
fn has_nothing(tid: u32) -> bool {
    is_ordinary(tid) && Attributes::get(tid).is_ok_and(|now| now.nice() == Some(0))
}

#[test]
fn who_executes_another_users_program_loses_what_was_asked_for_him() {
    let machine = Machine::new();
    let program = set_user_id(&machine);
    let shells = [0; 4].map(|_| shell_that_becomes(&machine, &program));
    let [mut tracked, mut reserved, mut reniced, mut real_time] = shells;
    let mut alice = machine.client(ALICE);
    alice.track(&tracked);
    alice.reserve(reserved.id());
    alice.nice(&reniced, -5);
    alice.done(&format!("realtime {0} {0} 10", real_time.id()));
    assert_eq!(alice.figure("own-tasks"), 4);
    for shell in [&mut tracked, &mut reserved, &mut reniced, &mut real_time] {
        let mut input = shell.0.stdin.take().unwrap();
        writeln!(input, "go").unwrap();
    }
    until("the way back", || {
        let others = [&reserved, &reniced, &real_time].map(Mortal::id);
        is_roots(tracked.id())
            && others
                .into_iter()
                .all(|tid| is_roots(tid) && has_nothing(tid))
    });
    until("an empty book", || alice.figure("own-tasks") == 0);
}

/// It takes over the number of its process's first thread.
#[test]
fn who_executes_it_on_another_thread_than_the_first_loses_his_priority_too() {
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
        until("the way back", || {
            is_roots(process.id()) && has_nothing(process.id())
        });
    }
}

#[test]
fn what_makes_no_sense_is_told_so() {
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
    let little = format!("reserve {tid} 1000 10000000 10000000");
    assert_eq!(machine.client(ROOT).refused(&little), "Failed");
    for nobody in [0, u32::MAX] {
        assert_eq!(alice.refused(&format!("track {nobody}")), "NoSuchTask");
    }
    assert!(is_ordinary(tid));
}

#[test]
fn a_program_with_too_many_threads_is_tracked_as_far_as_its_owners_quota_goes() {
    let machine = Machine::new();
    let threads: Vec<&str> = std::iter::repeat_n("random:1000000/1", 90).collect();
    let workload = machine.workload(ALICE, &threads);
    let sleeper = machine.sleeper(ALICE);
    let [mut alice, mut bob] = [ALICE, BOB].map(|uid| machine.client(uid));
    alice.track(&workload);
    assert_eq!(tids(workload.id()).len(), 91);
    until("the rest to be turned away", || {
        alice.figure("turned-away") == 91 - 64
    });
    assert_eq!(alice.figure("own-tasks"), 64);
    let one_more = format!("track {}", sleeper.id());
    assert_eq!(alice.refused(&one_more), "OverQuota");
    let own = machine.sleeper(BOB);
    bob.track(&own);
    drop(workload);
    until("room again", || alice.ask(&one_more) == "\"ok\"");
}
