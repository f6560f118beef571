//! A client holds its reservation until it gives it back, or leaves, or dies.

use crate::prelude::*;

#[test]
fn a_users_thread_with_a_rhythm_is_found_and_kept_until_it_is_no_longer_wanted() {
    let machine = Machine::new();
    let workload = machine.workload(ALICE, &["beat:20000/1000"]);
    let mut alice = machine.client(ALICE);
    alice.track(&workload);
    let thread = reserved_thread(workload.id());
    eventually("its place in the list", || {
        let one = alice.listed(thread)?;
        let period = one["period-ns"].as_f64()?;
        assert!(
            one["process"] == workload.id() && one["user"] == ALICE,
            "{one}"
        );
        (one["state"] == "kept" && (period / 20e6 - 1.0).abs() < 0.2).then_some(())
    });

    let untrack = format!("untrack {}", workload.id());
    alice.done(&untrack);
    assert_eq!(alice.refused(&untrack), "NotHeld");
    goes_back(thread);
    until("an empty list", || alice.list().is_empty());
}

#[test]
fn who_leaves_the_bus_or_dies_holds_nothing_any_more() {
    let machine = Machine::new();
    let tasks: Vec<_> = (0..3).map(|_| machine.sleeper(ALICE)).collect();
    let [mut leaves, mut dies, mut stays] = [0; 3].map(|_| machine.client(ALICE));
    leaves.reserve(tasks[0].id());
    dies.reserve(tasks[1].id());
    stays.reserve(tasks[2].id());
    assert_eq!(stays.ask("leave"), "ok");
    stays.reserve(tasks[2].id());
    assert_eq!(leaves.ask("leave"), "ok");
    dies.die();
    for task in &tasks[..2] {
        goes_back(task.id());
    }
    assert!(is_reserved(tasks[2].id()));
    assert_eq!(stays.figure("own-tasks"), 1);
}

#[test]
fn a_second_service_gives_way_to_the_first_and_takes_nothing_from_it() {
    let machine = Machine::new();
    let sleeper = machine.sleeper(ALICE);
    let mut alice = machine.client(ALICE);
    alice.reserve(sleeper.id());
    let second = onbeat(&machine.state())
        .args(["daemon", "--config"])
        .arg(machine.path("onbeat.toml"))
        .env("DBUS_SYSTEM_BUS_ADDRESS", machine.address())
        .output()
        .unwrap();
    has(stderr(&second), &["another onbeat daemon runs"]);
    assert!(!second.status.success() && is_reserved(sleeper.id()));
    assert_eq!(alice.told("list")[0]["state"], "asked-for");
}
