//! Programs that make it hard: their own ends, their children, crowds of threads.

use std::collections::HashSet;
use std::os::unix::process::CommandExt;
use std::process::Command;

use onbeat_act::attributes::Attributes;

use crate::{
    Folder, Mortal, RESERVES, eventually, needs_root, scheduling, stderr, working, workload,
};

/// Runs `program` under onbeat to its end, with a program beside it that onbeat has nothing to do
/// with; gives onbeat's exit status.
fn status_of(folder: &Folder, options: &[&str], program: &[&str]) -> Option<i32> {
    let bystander = working(&["beat:20000/500"]);
    let before = scheduling(bystander.id());
    let output = folder
        .keep("run")
        .args(options)
        .arg("--")
        .args(program)
        .output()
        .expect("onbeat starts");
    let messages = stderr(&output);
    assert!(!messages.contains("panicked"), "{messages}");
    assert_eq!(scheduling(bystander.id()), before, "{messages}");
    assert_eq!(folder.state_files(), 0, "{messages}");
    let tid = |of: &serde_json::Value| of["tid"].as_u64();
    let strangers: Vec<_> = before
        .iter()
        .map(|&(tid, _)| Some(u64::from(tid)))
        .collect();
    let log = folder.log();
    assert!(
        !log.iter().any(|entry| strangers.contains(&tid(entry))),
        "{log:?}"
    );
    output.status.code()
}

#[test]
fn the_exit_status_is_the_program_s() {
    needs_root!();
    let folder = Folder::new();
    let status = |program: &[&str]| status_of(&folder, &[], program);
    assert_eq!(status(&["true"]), Some(0));
    assert_eq!(status(&["sh", "-c", "exit 7"]), Some(7));
    assert_eq!(status(&["sh", "-c", "kill -KILL $$"]), Some(128 + 9));
    assert_eq!(status(&["/nowhere/at/all"]), Some(127));
    assert_eq!(status(&["/"]), Some(126));
}

#[test]
fn a_file_that_cannot_be_written_is_told_before_the_program_begins() {
    needs_root!();
    let folder = Folder::new();
    let begun = folder.path("begun");
    for option in ["--report", "--log", "--perfetto"] {
        let mut run = folder.onbeat();
        let run = run.args(["run", option, "/nowhere/file", "--", "touch"]);
        let output = run.arg(&begun).output().expect("onbeat starts");
        assert_eq!(output.status.code(), Some(125), "{option}");
        assert!(stderr(&output).contains("cannot write /nowhere/file"));
        assert!(!begun.exists(), "{option}");
    }
}

#[test]
fn a_program_with_a_nice_value_is_told_that_it_is_left_alone() {
    needs_root!();
    let folder = Folder::new();
    let mut nice = Command::new("nice");
    nice.args(["-n", "5"]).arg(env!("CARGO_BIN_EXE_onbeat"));
    let nice = nice.args(["run", "--dry-run", "--", "true"]);
    let output = nice
        .env("ONBEAT_STATE_DIR", folder.state())
        .output()
        .expect("onbeat starts");
    let messages = stderr(&output);
    assert!(messages.contains("the nice value 5"), "{messages}");
}

/// The output of `script` under `onbeat run` with these options.
fn printed(folder: &Folder, options: &[&str], script: &str) -> String {
    let mut run = folder.keep("run");
    let run = run.args(options).args(["--", "sh", "-c", script]);
    let output = run.output().expect("onbeat starts");
    assert!(output.status.success(), "{}", stderr(&output));
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn a_program_begins_while_its_tracer_is_not_loaded_yet_unless_it_is_not_protected() {
    needs_root!();
    let folder = Folder::new();
    // The output has the keys of onbeat's open files. The shell looks itself: what it starts is not
    // protected.
    let script = "for file in /proc/$PPID/fdinfo/*; do \
                    while read -r key rest; do echo \"$key\"; done < \"$file\"; \
                  done 2>/dev/null; true";
    let has_tracer = |options: &[&str]| printed(&folder, options, script).contains("prog_type");
    assert!(has_tracer(&["--dry-run"]));
    // Where the program stalls, the tracer may be loaded before it looks.
    eventually("a program that began first", || {
        (!has_tracer(&[])).then_some(())
    });
}

#[test]
fn a_program_goes_first_from_its_first_instruction_on() {
    needs_root!();
    let folder = Folder::new();
    let script = "read -r stat < /proc/$$/stat; echo \"$stat\"";
    let goes_first = |options: &[&str]| {
        let stat = printed(&folder, options, script);
        let after_name = stat.rsplit_once(") ").expect("a name").1;
        let fields: Vec<&str> = after_name.split(' ').collect();
        // A nice value where the kernel would refuse to move it into a control group.
        fields[37] == "1" || fields[16] == "-20"
    };
    // What is protected for its first second may be held up for longer.
    eventually("a program that goes first", || {
        goes_first(&[]).then_some(())
    });
    assert!(!goes_first(&RESERVES));
    assert_eq!(folder.state_files(), 0);
}

#[test]
fn a_program_has_the_nice_value_that_onbeat_was_started_with() {
    needs_root!();
    let folder = Folder::new();
    for options in [&[][..], &RESERVES, &["--dry-run"]] {
        let run = folder.keep("run");
        let mut niced = Command::new("nice");
        niced.args(["-n", "5"]).arg(run.get_program());
        niced
            .args(run.get_args())
            .args(options)
            .args(["--", "nice"]);
        for (name, value) in run.get_envs() {
            niced.env(name, value.unwrap_or_default());
        }
        let output = niced.output().expect("nice starts");
        let printed = String::from_utf8_lossy(&output.stdout);
        let own = Attributes::get(std::process::id()).expect("this thread lives");
        let own = own.nice().expect("an ordinary thread");
        assert_eq!(printed.trim(), (own + 5).min(19).to_string(), "{options:?}");
    }
}

#[test]
fn processes_that_began_before_the_tracer_are_kept_also_if_their_parent_has_ended() {
    needs_root!();
    let folder = Folder::new();
    let script = "(\"$0\" beat:10000/500 &); \"$0\" beat:15000/500 & exec \"$0\" beat:20000/500";
    let mut run = folder.keep("run");
    let run = run.args(["--children", "--", "sh", "-c", script]);
    let mut onbeat = Mortal::spawn(run.arg(workload()).process_group(0));
    let group = onbeat.id().cast_signed();
    eventually("a reservation in each of three processes", || {
        let log = folder.log();
        let reserved = log.iter().filter(|entry| entry["what"] == "reserved");
        let processes: HashSet<_> = reserved.filter_map(|entry| entry["pid"].as_u64()).collect();
        (processes.len() == 3).then_some(())
    });
    onbeat.signal(libc::SIGTERM);
    assert_eq!(onbeat.status(), Some(128 + libc::SIGTERM));
    assert_eq!(folder.state_files(), 0);
    let report = folder.report();
    let threads = report["threads"].as_array().expect("a list");
    let applications: HashSet<_> = threads
        .iter()
        .map(|thread| &thread["application"])
        .collect();
    assert_eq!(applications.len(), 1, "{report}");
    // SAFETY: a plain system call about a group of processes that this test started.
    unsafe { libc::kill(-group, libc::SIGKILL) };
}

#[test]
fn programs_that_fork_and_exec_and_die_at_once_are_followed_to_their_end() {
    needs_root!();
    let folder = Folder::new();
    let workload = workload();
    let workload = workload.to_str().expect("a path in text");
    let script = "for i in 1 2 3 4 5 6 7 8 9 10; do (true; true & exec true) & done; wait; \
                  exec \"$0\" --jobs 20 beat:10000/1000 beat:20000/1000";
    let program = ["sh", "-c", script, workload];
    assert_eq!(status_of(&folder, &["--children"], &program), Some(0));
    assert_eq!(status_of(&folder, &[], &program), Some(0));
}

#[test]
fn five_hundred_threads_that_end_at_once_are_counted_to_the_last() {
    needs_root!();
    let folder = Folder::new();
    let workload = workload();
    let workload = workload.to_str().expect("a path in text");
    let program = [workload, "crowd:500"];
    // Without protection the program waits for the tracer.
    assert_eq!(status_of(&folder, &RESERVES, &program), Some(0));
    let report = folder.report();
    let kept = report["threads"].as_array().map_or(0, Vec::len);
    let alone = report["left_alone"].as_u64();
    // The crowd, the thread that starts it, and the program's first one.
    assert_eq!(
        (alone.map(|n| n + kept as u64), &report["lost_events"]),
        (Some(502), &0.into())
    );
}

#[test]
fn a_program_whose_affinity_is_narrow_is_left_as_it_is_with_advice() {
    needs_root!();
    // SAFETY: takes a number and answers with one.
    if unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) } < 2 {
        println!("skipped: a_program_whose_affinity_is_narrow: it needs two CPUs");
        return;
    }
    let folder = Folder::new();
    let workload = workload();
    let program = Mortal::spawn(
        Command::new("taskset")
            .args(["-c", "0"])
            .arg(&workload)
            .arg("beat:50000/4000"),
    );
    let mut onbeat = Mortal::spawn(folder.keep("attach").arg(program.id().to_string()));
    let entry = eventually("a refusal", || {
        folder
            .log()
            .into_iter()
            .find(|entry| entry["what"] == "refused")
    });
    let why = entry["why"].as_str().unwrap_or_default();
    assert!(why.contains("affinity"), "{why}");
    onbeat.signal(libc::SIGTERM);
    assert_eq!(onbeat.status(), Some(0));
    let affinity = std::fs::read_to_string(format!("/proc/{}/status", program.id())).unwrap();
    assert!(affinity.contains("Cpus_allowed_list:\t0\n"), "{affinity}");
}

#[test]
fn a_program_that_will_not_be_interrupted_runs_on_when_onbeat_is_interrupted_twice() {
    needs_root!();
    let folder = Folder::new();
    let mark = folder.path("mark");
    let script = "trap '' INT; echo $$ > \"$0\"; while :; do sleep 1; done";
    let mut onbeat = Mortal::spawn(
        folder
            .keep("run")
            .args(["--", "sh", "-c", script])
            .arg(&mark),
    );
    let pid: i32 = eventually("the program", || {
        std::fs::read_to_string(&mark).ok()?.trim().parse().ok()
    });
    // Two signals that wait at the same time count as one: the first is known to have come when
    // what follows it has come.
    onbeat.signal(libc::SIGINT);
    eventually("the end of onbeat", || {
        onbeat.signal(libc::SIGINT);
        onbeat.0.try_wait().expect("it is our child")
    });
    // SAFETY: plain system calls about a process that this test started.
    let alive = unsafe { libc::kill(pid, 0) } == 0;
    // SAFETY: as above.
    unsafe { libc::kill(pid, libc::SIGKILL) };
    assert!(alive);
}
