//! onbeat is killed, and the way back is `onbeat restore`.

use std::time::Duration;

use crate::{
    Folder, Mortal, can_run, eventually, is_reserved, reserved_thread, scheduling, stderr, working,
};

/// How often onbeat is killed at some moment or other.
const KILLS: u64 = 50;

fn restore(folder: &Folder) {
    let output = folder.onbeat().arg("restore").output().expect("it starts");
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(folder.state_files(), 0, "{}", stderr(&output));
}

#[test]
fn after_a_kill_at_any_moment_restore_leaves_no_thread_that_differs() {
    if !can_run("after_a_kill_at_any_moment_restore_leaves_no_thread_that_differs") {
        return;
    }
    let folder = Folder::new();
    let program = working(&["beat:10000/500", "beat:15000/500", "beat:25000/500"]);
    let before = scheduling(program.id());
    for kill in 0..KILLS {
        let onbeat = Mortal::spawn(folder.keep("attach").arg(program.id().to_string()));
        // From before it is loaded to long after the lock, in no order.
        std::thread::sleep(Duration::from_millis(kill * 37 % KILLS * 10));
        drop(onbeat);
        restore(&folder);
        assert_eq!(scheduling(program.id()), before, "kill {kill}");
    }
}

#[test]
fn a_reservation_outlives_a_killed_onbeat_and_not_its_restore() {
    if !can_run("a_reservation_outlives_a_killed_onbeat_and_not_its_restore") {
        return;
    }
    let folder = Folder::new();
    let program = working(&["beat:50000/4000"]);
    let before = scheduling(program.id());
    // It may be let go just before the kill.
    eventually("a reservation when onbeat is dead", || {
        let onbeat = Mortal::spawn(folder.keep("attach").arg(program.id().to_string()));
        let tid = reserved_thread(program.id());
        drop(onbeat);
        let outlives = is_reserved(tid);
        restore(&folder);
        assert_eq!(scheduling(program.id()), before);
        outlives.then_some(())
    });
}
