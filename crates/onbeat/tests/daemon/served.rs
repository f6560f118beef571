//! `onbeat run`, `attach` and `reserve` as ordinary users type them: the service does it.

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use onbeat_act::attributes::Policy;

use crate::common::{Mortal, eventually, needs_root};
use crate::copied::copy_program;
use crate::machine::{ALICE, Machine, as_itself, is_ordinary, is_reserved, policy, tids};

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

fn reserved_thread(process: u32) -> u32 {
    eventually("a reservation", || {
        let mut threads = tids(process).into_iter();
        threads.find(|&tid| is_reserved(tid))
    })
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
    let _onbeat = Mortal::spawn(&mut alices(&machine, &["attach", "--quiet", &pid]));
    let thread = reserved_thread(workload.id());
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
