//! onbeat is killed: its guard puts back what it has changed, and where that is killed, too,
//! `onbeat restore` does.

use std::os::unix::process::CommandExt;
use std::process::Stdio;
use std::time::{Duration, Instant};

use onbeat_act::attributes::Attributes;

use crate::{
    Folder, Mortal, PATIENCE, can_run, eventually, is_reserved, reserved_thread, scheduling,
    stderr, working, workload,
};

/// How often onbeat is killed at some moment or other.
const KILLS: u64 = 50;

/// From before it is loaded to long after the lock, in no order.
fn moment(kill: u64) -> Duration {
    Duration::from_millis(kill * 37 % KILLS * 10)
}

fn restore(folder: &Folder) {
    let output = folder.onbeat().arg("restore").output().expect("it starts");
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(folder.state_files(), 0, "{}", stderr(&output));
}

#[test]
fn after_a_kill_at_any_moment_the_guard_puts_everything_back() {
    if !can_run("after_a_kill_at_any_moment_the_guard_puts_everything_back") {
        return;
    }
    let folder = Folder::new();
    let program = working(&["beat:10000/500", "beat:15000/500", "beat:25000/500"]);
    let before = scheduling(program.id());
    for kill in 0..KILLS {
        let onbeat = Mortal::spawn(folder.keep("attach").arg(program.id().to_string()));
        std::thread::sleep(moment(kill));
        drop(onbeat);
        eventually(&format!("what was before kill {kill}"), || {
            (scheduling(program.id()) == before && folder.state_files() == 0).then_some(())
        });
    }
}

#[test]
fn a_kill_as_soon_as_there_is_a_state_file_leaves_none() {
    if !can_run("a_kill_as_soon_as_there_is_a_state_file_leaves_none") {
        return;
    }
    let folder = Folder::new();
    let program = working(&["beat:10000/500"]);
    for kill in 0..KILLS / 5 {
        let onbeat = Mortal::spawn(folder.keep("attach").arg(program.id().to_string()));
        // Without a pause between two looks: a guard that is started after the file is not there
        // yet.
        let began = Instant::now();
        while folder.state_files() == 0 {
            assert!(began.elapsed() < PATIENCE, "no state file {kill}");
        }
        drop(onbeat);
        eventually(&format!("the end of state file {kill}"), || {
            (folder.state_files() == 0).then_some(())
        });
    }
}

#[test]
fn a_program_that_was_run_is_ordinary_after_a_kill() {
    if !can_run("a_program_that_was_run_is_ordinary_after_a_kill") {
        return;
    }
    let own = Attributes::get(std::process::id()).expect("this thread lives");
    let is_ordinary = |pid| scheduling(pid).iter().all(|(_, has)| *has == own);
    for kill in 0..KILLS / 5 {
        let folder = Folder::new();
        let mark = folder.path("mark");
        let mut run = folder.keep("run");
        run.args(["--", "sh", "-c", "echo $$ > $0; exec \"$@\""])
            .args([&mark, &workload()])
            .args(["beat:10000/500", "random:20000/5000"]);
        // A child may not have said its number yet, but is of its group.
        let onbeat = Mortal::spawn(run.stdout(Stdio::null()).process_group(0));
        let group = onbeat.id().cast_signed();
        std::thread::sleep(moment(kill * 5));
        drop(onbeat);
        let pid = std::fs::read_to_string(&mark);
        let program = pid.ok().and_then(|pid| pid.trim().parse().ok());
        eventually(&format!("what is ordinary after kill {kill}"), || {
            (program.is_none_or(is_ordinary) && folder.state_files() == 0).then_some(())
        });
        // SAFETY: a plain system call about a group of processes that this test started.
        unsafe { libc::kill(-group, libc::SIGKILL) };
    }
}

#[test]
fn after_a_kill_of_the_guard_too_restore_leaves_no_thread_that_differs() {
    if !can_run("after_a_kill_of_the_guard_too_restore_leaves_no_thread_that_differs") {
        return;
    }
    let folder = Folder::new();
    let program = working(&["beat:10000/500", "beat:15000/500", "beat:25000/500"]);
    let before = scheduling(program.id());
    for kill in 0..KILLS {
        let onbeat = Mortal::spawn(folder.keep("attach").arg(program.id().to_string()));
        std::thread::sleep(moment(kill));
        onbeat.kill_with_guard();
        restore(&folder);
        assert_eq!(scheduling(program.id()), before, "kill {kill}");
    }
}

#[test]
fn a_reservation_outlives_a_killed_onbeat_and_guard_and_not_a_restore() {
    if !can_run("a_reservation_outlives_a_killed_onbeat_and_guard_and_not_a_restore") {
        return;
    }
    let folder = Folder::new();
    let program = working(&["beat:50000/4000"]);
    let before = scheduling(program.id());
    // It may be let go just before the kill.
    eventually("a reservation when onbeat is dead", || {
        let onbeat = Mortal::spawn(folder.keep("attach").arg(program.id().to_string()));
        let tid = reserved_thread(program.id());
        onbeat.kill_with_guard();
        let outlives = is_reserved(tid);
        restore(&folder);
        assert_eq!(scheduling(program.id()), before);
        outlives.then_some(())
    });
}
