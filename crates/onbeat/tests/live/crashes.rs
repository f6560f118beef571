//! onbeat is killed: its guard puts back what it has changed, and where that is killed, too,
//! `onbeat restore` does.

use std::os::unix::process::CommandExt;
use std::time::Instant;

use crate::guard::kill_with_guard;
use crate::*;

/// How often onbeat is killed at some moment or other.
const KILLS: u64 = 50;

#[test]
fn a_kill_as_soon_as_there_is_a_state_file_leaves_none() {
    let folder = Folder::new();
    let program = working(&["beat:10000/500"]);
    for kill in 0..KILLS / 5 {
        let onbeat = folder.attach(program.id(), &[]);
        // Without a pause between two looks: a guard that is started after the file is not there
        // yet.
        let began = Instant::now();
        while folder.state_files() == 0 {
            assert!(began.elapsed() < PATIENCE, "no state file {kill}");
        }
        drop(onbeat);
        until(&format!("the end of state file {kill}"), || {
            folder.state_files() == 0
        });
    }
}

/// The threads of a process and of all that it has started.
fn family(pid: u32) -> Vec<(u32, Attributes)> {
    let mut threads = Vec::new();
    let mut processes = vec![pid];
    while let Some(pid) = processes.pop() {
        // One that ends meanwhile has nothing to be put back.
        let living = tids(pid).into_iter();
        threads.extend(living.filter_map(|tid| Some((tid, Attributes::get(tid).ok()?))));
        processes.extend(onbeat_sense::identity::children(pid));
    }
    threads
}

#[test]
fn a_program_that_was_run_is_ordinary_after_a_kill() {
    let told = std::env::var("ONBEAT_KILLS").ok();
    let kills = told.and_then(|kills| kills.parse().ok()).unwrap_or(KILLS);
    let own = Attributes::get(std::process::id()).unwrap();
    let differ = |pid| family(pid).iter().filter(|(_, has)| *has != own).count();
    let (mut changed, mut longest) = (0, Duration::ZERO);
    let mut random: u64 = 1;
    for kill in 0..kills {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let folder = Folder::new();
        let mark = folder.path("mark");
        let script = "echo $$ > \"$0\"; \"$1\" beat:20000/500 random:9000/900 & \
                      exec \"$1\" beat:10000/500 random:20000/5000";
        let mut run = folder.keep("run");
        run.args(["--children", "--", "sh", "-c", script])
            .args([&mark, &workload()]);
        // A child may not have said its number yet, but is of its group.
        let onbeat = Mortal::spawn(run.stdout(Stdio::null()).process_group(0));
        let group = onbeat.id().cast_signed();
        // Every other kill comes while onbeat starts.
        let life = (random >> 33) % if kill % 2 == 0 { 80 } else { 1500 };
        std::thread::sleep(Duration::from_millis(life));
        let pid = std::fs::read_to_string(&mark);
        let program = pid.ok().and_then(|pid| pid.trim().parse().ok());
        drop(onbeat);
        let killed = Instant::now();
        changed += program.map_or(0, differ);
        until(&format!("what is ordinary after kill {kill}"), || {
            let is_back = program.is_none_or(|pid| differ(pid) == 0);
            is_back && folder.state_files() == 0
        });
        longest = longest.max(killed.elapsed());
        // SAFETY: a plain system call about a group of processes that this test started.
        unsafe { libc::kill(-group, libc::SIGKILL) };
    }
    println!("{kills} kills, {changed} threads differed after one, all back in {longest:?}");
}

#[test]
fn after_a_kill_of_the_guard_too_restore_leaves_no_thread_that_differs() {
    let folder = Folder::new();
    let program = working(&["beat:10000/500", "beat:15000/500", "beat:25000/500"]);
    let before = scheduling(program.id());
    for kill in 0..KILLS {
        let onbeat = folder.attach(program.id(), &[]);
        // From before it is loaded to long after the lock, in no order.
        std::thread::sleep(Duration::from_millis(kill * 37 % KILLS * 10));
        kill_with_guard(onbeat);
        let restored = folder.onbeat().arg("restore").output().unwrap();
        assert!(restored.status.success(), "{}", stderr(&restored));
        assert_eq!(folder.state_files(), 0);
        assert_eq!(scheduling(program.id()), before, "kill {kill}");
    }
}
