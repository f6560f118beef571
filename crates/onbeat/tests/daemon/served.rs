//! `onbeat run`, `attach` and `reserve` as ordinary users type them: the service does it.

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use onbeat_act::attributes::Policy;
use serde_json::Value;

use crate::common::{Mortal, eventually, needs_root};
use crate::copied::copy_program;
use crate::documented::{documented, written};
use crate::machine::{
    ALICE, Machine, as_itself, is_ordinary, is_reserved, policy, reserved_thread,
};

/// onbeat where users may execute it.
fn installed(machine: &Machine) -> PathBuf {
    let path = machine.path("onbeat");
    if !path.exists() {
        copy_program(env!("CARGO_BIN_EXE_onbeat"), &path);
    }
    path
}

fn alices(machine: &Machine, args: &[&str]) -> Command {
    let mut command = machine.command(ALICE, &installed(machine));
    command.args(args).env_remove("ONBEAT_STATE_DIR");
    command
}

fn said(command: &mut Command) -> Output {
    command.output().expect("it can be started")
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The process that this one has started.
fn child_of(pid: u32, name: &str) -> u32 {
    eventually("the program", || {
        let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).ok()?;
        let child: u32 = children.split_whitespace().next()?.parse().ok()?;
        let comm = std::fs::read_to_string(format!("/proc/{child}/comm")).ok()?;
        (comm.trim() == name).then_some(child)
    })
}

fn alices_folder(machine: &Machine) -> PathBuf {
    let folder = machine.path("alices");
    std::fs::create_dir(&folder).expect("there is room for a folder");
    std::os::unix::fs::chown(&folder, Some(ALICE), None).expect("it is our own");
    folder
}

#[test]
fn a_user_runs_a_program_on_the_beat_without_any_right() {
    needs_root!();
    let machine = Machine::new();
    let workload = machine.path("workload");
    let workload = workload.to_str().expect("it is text");
    let log = machine.path("said");
    // It looks once a second, and a machine that stalls may keep it from looking while there is
    // something to see.
    eventually("a row with its period", || {
        let file = std::fs::File::create(&log).expect("there is room for a file");
        let mut run = alices(&machine, &["run", "--", workload, "beat:20000/1000"]);
        let run = run.stdout(Stdio::null()).stderr(file);
        let mut onbeat = as_itself(Mortal::spawn(run), "onbeat");
        let program = child_of(onbeat.id(), "workload");
        reserved_thread(program);
        // As a rule long enough that it was looked at since.
        std::thread::sleep(std::time::Duration::from_millis(2500));
        onbeat.signal(libc::SIGTERM);
        let status = onbeat.0.wait().expect("it is our child");
        assert_eq!(status.code(), Some(128 + libc::SIGTERM));
        let said = std::fs::read_to_string(&log).expect("it was written");
        assert!(!said.contains("CAP_SYS_NICE"), "{said}");
        let mut rows = said.lines();
        let application = rows.find(|line| line.starts_with("workload"));
        let found = application.is_some_and(|row| row.contains(" by reservation"))
            && rows.any(|row| row.starts_with("  workload") && row.contains(" ms "));
        if !found {
            println!("no row with a period: {said}");
        }
        found.then_some(())
    });
}

#[test]
fn what_a_user_attached_to_goes_back_when_onbeat_is_killed() {
    needs_root!();
    let machine = Machine::new();
    let workload = machine.workload(ALICE, &["beat:20000/1000"]);
    let pid = workload.id().to_string();
    let mut onbeat = Mortal::spawn(&mut alices(&machine, &["attach", "--quiet", &pid]));
    let thread = reserved_thread(workload.id());
    onbeat.0.kill().expect("it is our child");
    eventually("the way back", || is_ordinary(thread).then_some(()));
}

#[test]
fn a_service_that_is_started_anew_is_asked_again() {
    needs_root!();
    let mut machine = Machine::new();
    let workload = machine.workload(ALICE, &["beat:20000/1000"]);
    let pid = workload.id().to_string();
    let _onbeat = Mortal::spawn(&mut alices(&machine, &["attach", "--quiet", &pid]));
    let thread = reserved_thread(workload.id());
    machine.end(libc::SIGTERM);
    assert!(is_ordinary(thread));
    machine.start();
    eventually("another reservation", || is_reserved(thread).then_some(()));
}

#[test]
fn a_bus_that_is_started_anew_is_found_again() {
    needs_root!();
    let mut machine = Machine::new();
    let workload = machine.workload(ALICE, &["beat:20000/1000"]);
    let pid = workload.id().to_string();
    let log = alices_folder(&machine).join("log");
    let mut attach = alices(&machine, &["attach", "--quiet", &pid, "--log"]);
    let _onbeat = Mortal::spawn(attach.arg(&log));
    let thread = reserved_thread(workload.id());
    // The service's word has reached it.
    eventually("a line in its log", || {
        std::fs::metadata(&log)
            .is_ok_and(|log| log.len() > 0)
            .then_some(())
    });
    machine.end_bus();
    machine.ended();
    assert!(is_ordinary(thread));
    machine.start_bus();
    machine.start();
    eventually("another reservation", || is_reserved(thread).then_some(()));
}

#[test]
fn who_waits_for_a_service_that_hangs_may_be_interrupted() {
    needs_root!();
    let machine = Machine::new();
    let mark = machine.path("mark");
    let touch = ["run", "--", "touch", mark.to_str().expect("it is text")];
    machine.signal(libc::SIGSTOP);
    let mut onbeat = Mortal::spawn(&mut alices(&machine, &touch));
    let children = format!("/proc/{0}/task/{0}/children", onbeat.id());
    // It listens for signals before it has any.
    eventually("the process that waits for the service's word", || {
        let children = std::fs::read_to_string(&children).ok()?;
        (!children.trim().is_empty()).then_some(())
    });
    onbeat.signal(libc::SIGINT);
    // Not 125, as after a wait in vain.
    assert_eq!(onbeat.status(), Some(128 + libc::SIGINT));
    assert!(!mark.exists());
    machine.signal(libc::SIGCONT);
}

#[test]
fn a_user_reserves_for_a_program_within_his_quota() {
    needs_root!();
    let machine = Machine::new();
    let reserve = |runtime: &str| {
        let times = ["reserve", "--runtime", runtime, "--period", "20ms"];
        let mut command = alices(&machine, &times);
        command.args(["--", "sleep", "1000"]);
        command
    };
    let mut onbeat = as_itself(Mortal::spawn(&mut reserve("2ms")), "onbeat");
    let program = child_of(onbeat.id(), "sleep");
    let policy = policy(program);
    // The program, too: it would keep its reservation, for the service ends with the test.
    onbeat.signal(libc::SIGTERM);
    let status = onbeat.0.wait().expect("it is our child");
    assert_eq!(status.code(), Some(128 + libc::SIGTERM));
    let Policy::Deadline(now) = policy else {
        panic!("no reservation: {policy:?}");
    };
    assert_eq!((now.runtime_ns, now.period_ns), (2_000_000, 20_000_000));
    let refused = said(&mut reserve("15ms"));
    assert_eq!(refused.status.code(), Some(125));
    assert!(
        stderr(&refused).contains("may reserve"),
        "{}",
        stderr(&refused)
    );
}

#[test]
fn who_may_nothing_and_finds_no_service_is_told_so() {
    let machine = Machine::bus();
    let output = said(&mut alices(&machine, &["run", "--", "sleep", "0"]));
    assert_eq!(output.status.code(), Some(125));
    let told = stderr(&output);
    assert!(told.contains("systemctl start onbeat"), "{told}");
}

#[test]
fn what_the_service_decides_by_itself_cannot_be_asked_of_it() {
    let machine = Machine::bus();
    for args in [
        ["run", "--service", "--cap=50%", "--", "sleep"],
        ["run", "--always", "--hard", "--", "sleep"],
    ] {
        let output = said(alices(&machine, &args).arg("0"));
        assert_eq!(output.status.code(), Some(125));
        let told = stderr(&output);
        assert!(
            told.contains("onbeat.toml") && told.contains("sudo"),
            "{told}"
        );
    }
}

#[test]
fn a_user_gets_the_report_and_the_log_that_root_gets() {
    needs_root!();
    let machine = Machine::new();
    let folder = alices_folder(&machine);
    let [report, log, page] = ["report.json", "log", "page.html"].map(|name| folder.join(name));
    let [report, log, page] = [&report, &log, &page].map(|path| path.to_str().expect("it is text"));
    let workload = machine.path("workload");
    let workload = workload.to_str().expect("it is text");
    let read = |path: &str| -> Value {
        let text = std::fs::read_to_string(path).expect("it was written");
        serde_json::from_str(text.lines().next().unwrap_or_default()).expect("it is JSON")
    };
    eventually("jobs in a report", || {
        let beat = ["--", workload, "--jobs", "150", "beat:20000/1000"];
        let mut run = alices(&machine, &["run", "--report", report, "--log", log]);
        let output = said(run.args(beat));
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let told = read(report);
        let thread = &told["threads"][0];
        let history = &told["history"][0];
        let jobs = history["recent_jobs"]["ended_ns"].as_array()?.len() as u64;
        assert_eq!(history["tid"], thread["tid"]);
        assert!(jobs <= thread["jobs"].as_u64()?, "{told}");
        let ended = history["recent_jobs"]["ended_ns"].as_array()?;
        let ended: Vec<u64> = ended.iter().filter_map(Value::as_u64).collect();
        assert!(ended.is_sorted_by(|one, next| one < next), "{told}");
        (jobs > 20 && thread["response_time"]["p99_ns"].is_u64()).then_some(())
    });
    let told = read(report);
    let documented = documented("What `--report` writes");
    for field in written(&told)
        .into_iter()
        .chain(written(&told["threads"][0]))
    {
        assert!(documented.contains(&field), "{field}");
    }
    let log = std::fs::read_to_string(log).expect("it was written");
    let lines = log
        .lines()
        .map(|line| serde_json::from_str(line).expect("it is JSON"));
    let first = lines
        .into_iter()
        .find(|line: &Value| line["what"] == "reserved");
    assert_eq!(first.as_ref(), told["decisions"].get(0));
    let output = said(&mut alices(&machine, &["report", report, "-o", page]));
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let page = std::fs::read_to_string(page).expect("it was written");
    assert!(page.contains("Distribution of response times"), "{page}");
}

#[test]
fn a_user_whose_quota_is_too_small_is_told_once_which_line_would_change_it() {
    needs_root!();
    let mut machine = Machine::bus();
    machine.configure("[quota]\nbandwidth = \"20%\"\n");
    machine.start();
    let workload = machine.path("workload");
    let told = machine.path("said");
    let file = std::fs::File::create(&told).expect("there is room for a file");
    let mut run = alices(&machine, &["run", "--"]);
    let run = run.arg(&workload).arg("beat:20000/8000");
    let mut onbeat = Mortal::spawn(run.stdout(Stdio::null()).stderr(file));
    let line = "under [quota] in /etc/onbeat/onbeat.toml";
    let about = |text: &str, what: &str| {
        let lines = text.lines();
        lines
            .filter(|text| text.contains(what) && text.contains(line))
            .count()
    };
    for what in ["may reserve 20.0% of a CPU", "has used up the CPU time"] {
        eventually("word on the terminal", || {
            let text = std::fs::read_to_string(&told).expect("it is there");
            assert!(about(&text, what) <= 1, "{text}");
            (about(&text, what) == 1).then_some(())
        });
        eventually("a line in the journal", || {
            let count = about(&machine.log(), what);
            assert!(count <= 1, "{}", machine.log());
            (count == 1).then_some(())
        });
    }
    eventually("a row of top", || {
        let rows = said(&mut alices(&machine, &["top", "--once"]));
        String::from_utf8_lossy(&rows.stdout)
            .contains(line)
            .then_some(())
    });
    // It ends its program; a kill would leave that running.
    onbeat.signal(libc::SIGTERM);
    assert_eq!(onbeat.status(), Some(128 + libc::SIGTERM));
}
