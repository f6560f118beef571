//! Programs that make it hard: their own ends, their children, crowds of threads.

use std::collections::HashSet;
use std::os::unix::process::CommandExt;

use crate::*;

/// Runs `program` under onbeat to its end, with a program beside it that onbeat has nothing to do
/// with; gives onbeat's exit status.
fn status_of(folder: &Folder, options: &[&str], program: &[&str]) -> Option<i32> {
    let bystander = working(&["beat:20000/500"]);
    let before = scheduling(bystander.id());
    let mut run = folder.keep("run");
    let output = run.args(options).arg("--").args(program).output().unwrap();
    let messages = stderr(&output);
    assert!(!messages.contains("panicked"), "{messages}");
    assert_eq!(scheduling(bystander.id()), before, "{messages}");
    assert_eq!(folder.state_files(), 0, "{messages}");
    let is_strangers = |entry: &Value| before.iter().any(|(tid, _)| entry["tid"] == *tid);
    assert_eq!(folder.entry(is_strangers), None);
    output.status.code()
}

#[test]
fn the_exit_status_is_the_program_s() {
    let folder = Folder::new();
    for (program, status) in [
        (&["true"][..], 0),
        (&["sh", "-c", "exit 7"], 7),
        (&["sh", "-c", "kill -KILL $$"], 128 + 9),
        (&["/nowhere/at/all"], 127),
        (&["/"], 126),
    ] {
        assert_eq!(status_of(&folder, &[], program), Some(status));
    }
}

#[test]
fn a_file_that_cannot_be_written_is_told_before_the_program_begins() {
    let folder = Folder::new();
    let begun = folder.path("begun");
    for option in ["--report", "--log", "--perfetto"] {
        let mut run = folder.onbeat();
        let run = run.args(["run", option, "/nowhere/file", "--", "touch"]);
        let output = run.arg(&begun).output().unwrap();
        assert_eq!(output.status.code(), Some(125), "{option}");
        has(stderr(&output), &["cannot write /nowhere/file"]);
        assert!(!begun.exists(), "{option}");
    }
}

/// The output of `script` under `onbeat run` with these options.
fn printed(folder: &Folder, options: &[&str], script: &str) -> String {
    let mut run = folder.keep("run");
    let run = run.args(options).args(["--", "sh", "-c", script]);
    let output = run.output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    stdout(&output).to_owned()
}

#[test]
fn a_program_goes_first_from_its_first_instruction_on() {
    let folder = Folder::new();
    let script = "read -r stat < /proc/$$/stat; echo \"$stat\"";
    let goes_first = |options: &[&str]| {
        let stat = printed(&folder, options, script);
        let after_name = stat.rsplit_once(") ").unwrap().1;
        let fields: Vec<&str> = after_name.split(' ').collect();
        // A nice value where the kernel would refuse to move it into a control group.
        fields[37] == "1" || fields[16] == "-20"
    };
    // What is protected for its first second may be held up for longer.
    until("a program that goes first", || goes_first(&[]));
    assert!(!goes_first(&RESERVES));
    assert_eq!(folder.state_files(), 0);
}

#[test]
fn a_program_has_the_nice_value_that_onbeat_was_started_with_and_it_is_told_what_that_means() {
    let folder = Folder::new();
    for options in [&[][..], &RESERVES, &["--dry-run"]] {
        let run = folder.keep("run");
        let mut niced = Command::new("nice");
        niced
            .args(["-n", "5"])
            .arg(run.get_program())
            .args(run.get_args());
        niced.args(options).args(["--", "nice"]);
        let output = niced
            .env("ONBEAT_STATE_DIR", folder.state())
            .output()
            .unwrap();
        let own = Attributes::get(std::process::id()).unwrap().nice().unwrap();
        let nice = (own + 5).min(19);
        assert_eq!(stdout(&output).trim(), nice.to_string(), "{options:?}");
        if options == ["--dry-run"] {
            has(stderr(&output), &[format!("the nice value {nice}")]);
        }
    }
}

#[test]
fn processes_that_began_before_the_tracer_are_kept_also_if_their_parent_has_ended() {
    let folder = Folder::new();
    let script = "(\"$0\" beat:10000/500 &); \"$0\" beat:15000/500 & exec \"$0\" beat:20000/500";
    let mut run = folder.keep("run");
    let run = run.args(["--children", "--", "sh", "-c", script]);
    let mut onbeat = Mortal::spawn(run.arg(workload()).process_group(0));
    let group = onbeat.id().cast_signed();
    until("a reservation in each of three processes", || {
        let log = folder.log();
        let reserved = log.iter().filter(|entry| entry["what"] == "reserved");
        let processes: HashSet<_> = reserved.filter_map(|entry| entry["pid"].as_u64()).collect();
        processes.len() == 3
    });
    assert_eq!(onbeat.ends(libc::SIGTERM), Some(128 + libc::SIGTERM));
    assert_eq!(folder.state_files(), 0);
    let report = folder.report();
    let threads = report["threads"].as_array().unwrap().iter();
    let applications: HashSet<_> = threads.map(|thread| &thread["application"]).collect();
    assert_eq!(applications.len(), 1, "{report}");
    // SAFETY: a plain system call about a group of processes that this test started.
    unsafe { libc::kill(-group, libc::SIGKILL) };
}

#[test]
fn programs_that_fork_and_exec_and_die_at_once_are_followed_to_their_end() {
    let folder = Folder::new();
    let workload = workload();
    let workload = workload.to_str().unwrap();
    let script = "for i in 1 2 3 4 5 6 7 8 9 10; do (true; true & exec true) & done; wait; \
                  exec \"$0\" --jobs 20 beat:10000/1000 beat:20000/1000";
    let program = ["sh", "-c", script, workload];
    assert_eq!(status_of(&folder, &["--children"], &program), Some(0));
    assert_eq!(status_of(&folder, &[], &program), Some(0));
}

#[test]
fn a_program_whose_affinity_is_narrow_is_left_as_it_is_with_advice() {
    // SAFETY: takes a number and answers with one.
    if unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) } < 2 {
        println!("skipped: a_program_whose_affinity_is_narrow: it needs two CPUs");
        return;
    }
    let folder = Folder::new();
    let mut narrow = Command::new("taskset");
    narrow
        .args(["-c", "0"])
        .arg(workload())
        .arg("beat:50000/4000");
    let program = Mortal::spawn(&mut narrow);
    let mut attach = folder.keep("attach");
    let attach = attach.arg(program.id().to_string());
    let mut onbeat = Mortal::spawn(attach.stderr(Stdio::piped()));
    let refused = folder.says("refused")["why"].to_string();
    has(refused, &["affinity"]);
    assert_eq!(onbeat.ends(libc::SIGTERM), Some(0));
    let said = std::io::read_to_string(onbeat.0.stderr.take().unwrap()).unwrap();
    has(said, &["its CPU affinity is narrower", "widen it with"]);
    let affinity = std::fs::read_to_string(format!("/proc/{}/status", program.id())).unwrap();
    has(&affinity, &["Cpus_allowed_list:\t0\n"]);
}

#[test]
fn a_program_that_will_not_be_interrupted_runs_on_when_onbeat_is_interrupted_twice() {
    let folder = Folder::new();
    let mark = folder.path("mark");
    let script = "trap '' INT; echo $$ > \"$0\"; while :; do sleep 1; done";
    let mut run = folder.keep("run");
    let mut onbeat = Mortal::spawn(run.args(["--", "sh", "-c", script]).arg(&mark));
    let pid: i32 = eventually("the program", || {
        std::fs::read_to_string(&mark).ok()?.trim().parse().ok()
    });
    // Two signals that wait at the same time count as one: the first is known to have come when
    // what follows it has come.
    onbeat.signal(libc::SIGINT);
    eventually("the end of onbeat", || {
        onbeat.signal(libc::SIGINT);
        onbeat.0.try_wait().unwrap()
    });
    // SAFETY: plain system calls about a process that this test started.
    let alive = unsafe { libc::kill(pid, 0) } == 0;
    // SAFETY: as above.
    unsafe { libc::kill(pid, libc::SIGKILL) };
    assert!(alive);
}
