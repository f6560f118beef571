//! A client holds its reservation until it gives it back, or leaves, or dies.

use std::io::Write;
use std::path::Path;
use std::process::Stdio;

use onbeat_act::attributes::Policy;

use crate::common::{Mortal, eventually, needs_root};
use crate::machine::{
    ALICE, Client, Machine, as_itself, is_ordinary, is_reserved, policy, reserved_thread,
};
use crate::own_state::{onbeat, state_files};

/// A tenth of a CPU.
const TENTH: &str = "1000000 10000000 10000000";

#[test]
fn a_users_thread_with_a_rhythm_is_found_and_kept_until_it_is_no_longer_wanted() {
    needs_root!();
    let machine = Machine::new();
    let workload = machine.workload(ALICE, &["beat:20000/1000"]);
    let mut alice = machine.client(ALICE);
    alice.done(&format!("track {}", workload.id()));
    let thread = reserved_thread(workload.id());
    eventually("its place in the list", || {
        let threads = alice.told("list");
        let one = threads
            .as_array()?
            .iter()
            .find(|one| one["thread"] == thread)?;
        let period = one["period-ns"].as_f64()?;
        assert_eq!(
            (&one["process"], &one["user"]),
            (&workload.id().into(), &ALICE.into())
        );
        (one["state"] == "kept" && (period / 20e6 - 1.0).abs() < 0.2).then_some(())
    });

    alice.done(&format!("untrack {}", workload.id()));
    assert_eq!(
        alice.refused(&format!("untrack {}", workload.id())),
        "NotHeld"
    );
    eventually("the way back", || is_ordinary(thread).then_some(()));
    eventually("an empty list", || {
        (alice.told("list").as_array()?.is_empty()).then_some(())
    });
}

#[test]
fn a_reservation_is_given_changed_and_put_back() {
    needs_root!();
    let machine = Machine::new();
    let sleeper = machine.sleeper(ALICE);
    let mut alice = machine.client(ALICE);
    let tid = sleeper.id();
    alice.done(&format!("reserve {tid} {TENTH}"));
    alice.done(&format!("reserve {tid} 500000 10000000 20000000"));
    let Policy::Deadline(now) = policy(tid) else {
        panic!("no reservation: {:?}", policy(tid));
    };
    assert_eq!(
        (now.runtime_ns, now.deadline_ns, now.period_ns),
        (500_000, 10_000_000, 20_000_000)
    );
    assert_eq!(alice.told("list")[0]["state"], "asked-for");
    let figures = alice.told("statistics");
    assert_eq!(
        (&figures["own-tasks"], &figures["reserved"]),
        (&1.into(), &1.into())
    );
    alice.done(&format!("release {tid}"));
    eventually("the way back", || is_ordinary(tid).then_some(()));
    assert_eq!(alice.refused(&format!("release {tid}")), "NotHeld");
    // The kernel counts the former one for a period yet: the service waits for that, the caller
    // does not see it.
    alice.done(&format!("reserve {tid} {TENTH}"));
    assert!(is_reserved(tid));
}

#[test]
fn who_leaves_the_bus_or_dies_holds_nothing_any_more() {
    needs_root!();
    let machine = Machine::new();
    let tasks: Vec<_> = (0..3).map(|_| machine.sleeper(ALICE)).collect();
    let [mut leaves, mut dies, mut stays] = [0; 3].map(|_| machine.client(ALICE));
    leaves.done(&format!("reserve {} {TENTH}", tasks[0].id()));
    dies.done(&format!("reserve {} {TENTH}", tasks[1].id()));
    stays.done(&format!("reserve {} {TENTH}", tasks[2].id()));
    assert_eq!(stays.ask("leave"), "ok");
    stays.done(&format!("reserve {} {TENTH}", tasks[2].id()));
    assert_eq!(leaves.ask("leave"), "ok");
    dies.die();
    for task in &tasks[..2] {
        eventually("the way back", || is_ordinary(task.id()).then_some(()));
    }
    assert!(is_reserved(tasks[2].id()));
    assert_eq!(stays.told("statistics")["own-tasks"], 1);
}

#[test]
fn a_child_that_is_tracked_by_itself_stays_so_when_its_parent_no_longer_is() {
    needs_root!();
    let machine = Machine::new();
    let mut command = machine.command(ALICE, Path::new("sh"));
    command
        .args(["-c", "read go; \"$0\" random:1000000/1 & read end; kill $!"])
        .arg(machine.path("workload"))
        .stdin(Stdio::piped())
        .stdout(Stdio::null());
    let mut parent = as_itself(Mortal::spawn(&mut command), "sh");
    let mut input = parent.0.stdin.take().expect("it is piped");
    let mut alice = machine.client(ALICE);
    alice.done(&format!("track {} children", parent.id()));
    writeln!(input, "go").expect("it listens");
    let listed = |alice: &mut Client, process: u64| {
        let threads = alice.told("list");
        let threads = threads.as_array().expect("a list").clone();
        threads.iter().any(|one| one["process"] == process)
    };
    let child = eventually("the child", || {
        let threads = alice.told("list");
        let mut threads = threads.as_array()?.iter();
        let of_child = threads.find(|one| one["process"] != parent.id())?;
        of_child["process"].as_u64()
    });
    alice.done(&format!("track {child}"));
    alice.done(&format!("untrack {}", parent.id()));
    assert!(!listed(&mut alice, u64::from(parent.id())));
    assert!(listed(&mut alice, child));
    alice.done(&format!("untrack {child}"));
    assert_eq!(alice.told("statistics")["own-tasks"], 0);
    writeln!(input, "end").expect("it listens");
    parent.0.wait().expect("it is our child");
}

#[test]
fn a_second_service_gives_way_to_the_first_and_takes_nothing_from_it() {
    needs_root!();
    let machine = Machine::new();
    let sleeper = machine.sleeper(ALICE);
    let mut alice = machine.client(ALICE);
    alice.done(&format!("reserve {} {TENTH}", sleeper.id()));
    let second = onbeat(&machine.state())
        .args(["daemon", "--config"])
        .arg(machine.path("onbeat.toml"))
        .env("DBUS_SYSTEM_BUS_ADDRESS", machine.address())
        .output()
        .expect("it is there");
    let said = String::from_utf8_lossy(&second.stderr);
    assert!(
        !second.status.success() && said.contains("another onbeat daemon runs"),
        "{said}"
    );
    assert!(is_reserved(sleeper.id()), "{said}");
    assert_eq!(alice.told("list")[0]["state"], "asked-for");
}

#[test]
fn when_the_service_ends_everybody_has_back_what_he_had() {
    needs_root!();
    let mut machine = Machine::new();
    let tasks: Vec<_> = (0..2).map(|_| machine.sleeper(ALICE)).collect();
    let mut alice = machine.client(ALICE);
    for task in &tasks {
        alice.done(&format!("reserve {} {TENTH}", task.id()));
    }
    assert_eq!(machine.end(libc::SIGTERM), Some(0), "{}", machine.log());
    for task in &tasks {
        assert!(is_ordinary(task.id()));
    }
    assert_eq!(state_files(&machine.state()), 0);
}
