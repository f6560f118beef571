//! `onbeat watch` as an ordinary user, on live programs, by the tracers that need no privilege.
//!
//! Only what must hold however the machine stalls is asserted. As root, this gives up its
//! privileges for the programs: they have no owner.

#[path = "../common/mod.rs"]
mod common;
#[path = "../copied/mod.rs"]
mod copied;
#[path = "../in_time/mod.rs"]
mod in_time;
#[path = "../common/skip.rs"]
mod skip;
#[path = "../common/text.rs"]
mod text;
mod trust;

use std::ffi::OsString;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use common::{Mortal, eventually, until};
use copied::copy_program;
use in_time::in_time;
use serde_json::Value;
use skip::skip;
use text::{has, stderr, stdout};

/// How long something that must come may take on a stalled machine.
const PATIENCE: Duration = Duration::from_secs(180);

/// The tracers that hear a program which onbeat starts, and need no privilege.
const TRACERS: [&str; 2] = ["ptrace", "preload"];

/// Ends a test that needs root and has it not.
macro_rules! needs_root {
    () => {
        // SAFETY: geteuid takes nothing and always succeeds.
        if unsafe { libc::geteuid() } != 0 {
            return crate::skip::skip("it needs root");
        }
    };
}
use needs_root;

/// Programs where all users can execute them.
struct Programs(tempfile::TempDir);

impl Programs {
    fn get() -> &'static Self {
        static PROGRAMS: OnceLock<Programs> = OnceLock::new();
        PROGRAMS.get_or_init(|| {
            let folder = tempfile::tempdir().unwrap();
            let open = |path: &Path| {
                fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
            };
            open(folder.path());
            let programs = Self(folder);
            let onbeat = PathBuf::from(env!("CARGO_BIN_EXE_onbeat"));
            copy_program(&onbeat, programs.path("onbeat"));
            let examples = onbeat.parent().expect("target/PROFILE").join("examples");
            copy_program(examples.join("workload"), programs.path("workload"));
            programs.compile("sleeper", &[]);
            programs.compile("static-sleeper", &["-static"]);
            programs
        })
    }

    fn compile(&self, name: &str, flags: &[&str]) {
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/watch/sleeper.c");
        let mut compiler = Command::new("cc");
        compiler
            .args([
                "-std=gnu11",
                "-O1",
                "-Wall",
                "-Werror",
                "-D_GNU_SOURCE",
                "-pthread",
            ])
            .args(flags)
            .args([source, "-o"])
            .arg(self.path(name));
        assert!(compiler.status().unwrap().success());
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }
}

/// `onbeat watch` with these options, as a user without rights.
fn watch(tracer: &str, options: &[&str]) -> Command {
    watch_behind(&[], tracer, options)
}

/// The same, begun by these words.
fn watch_behind(before: &[&str], tracer: &str, options: &[&str]) -> Command {
    // SAFETY: takes nothing and always succeeds.
    let is_root = unsafe { libc::geteuid() } == 0;
    let nobody = "setpriv --reuid 65534 --regid 65534 --clear-groups";
    let nobody: Vec<&str> = nobody.split(' ').collect();
    let mut words: Vec<OsString> = before.iter().map(OsString::from).collect();
    words.extend(nobody.iter().filter(|_| is_root).map(OsString::from));
    words.push(Programs::get().path("onbeat").into());
    let mut command = Command::new(&words[0]);
    command
        .args(&words[1..])
        .args(["watch", "--tracer", tracer])
        .args(options)
        .arg("--")
        .stdin(Stdio::null());
    command
}

fn sleeper() -> PathBuf {
    Programs::get().path("sleeper")
}

fn output(command: &mut Command) -> Output {
    let output = command.output().unwrap();
    let messages = stderr(&output);
    assert!(!messages.contains("panicked"), "{messages}");
    output
}

/// The output of `--json` for each thread.
fn threads(output: &Output) -> Vec<Value> {
    let text = stdout(output);
    let objects = text.lines().filter(|line| line.starts_with('{'));
    let parsed = objects.map(|line| serde_json::from_str(line).unwrap());
    parsed
        .filter(|line: &Value| line["comm"].is_string())
        .collect()
}

/// How many bursts all threads had.
fn bursts(output: &Output) -> u64 {
    let messages = stderr(output);
    let told = messages
        .lines()
        .find_map(|line| line.split_once(" bursts in "));
    let (count, _) = told.unwrap_or_else(|| panic!("nobody told: {messages}"));
    count.parse().expect("it is a number")
}

impl Mortal {
    /// The first line that the program writes.
    fn first_line(&mut self) -> String {
        let mut line = String::new();
        let output = self.0.stdout.take().expect("it was asked for");
        BufReader::new(output).read_line(&mut line).unwrap();
        line.trim().to_owned()
    }
}

fn signal_to(pid: u32, signal: i32) {
    // SAFETY: a plain system call about a process that the test has started.
    unsafe { libc::kill(pid.cast_signed(), signal) };
}

/// The letter of the state that a process is in; none if there is no such process.
fn state(pid: u32) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.chars().next()
}

#[test]
fn the_exit_status_is_the_program_s() {
    for tracer in TRACERS {
        for (program, status) in [
            (&["true"][..], 0),
            (&["sh", "-c", "exit 7"], 7),
            (&["sh", "-c", "kill -KILL $$"], 128 + 9),
            (&["/nowhere/at/all"], 127),
            (&["/"], 126),
        ] {
            let output = output(watch(tracer, &[]).args(program));
            assert_eq!(output.status.code(), Some(status), "{tracer}");
        }
    }
}

/// The name of each thread and how often it was heard to block, in order.
fn blocked(report: &Value) -> Vec<(String, usize)> {
    let history = report["history"].as_array().unwrap();
    let of = |tid: &Value| {
        let own = history.iter().find(|thread| thread["tid"] == *tid);
        own.map_or(0, |own| own["wakeups_ns"].as_array().unwrap().len())
    };
    let threads = report["threads"].as_array().unwrap().iter();
    let heard = threads.map(|it| (it["comm"].as_str().unwrap().to_owned(), of(&it["tid"])));
    let mut heard: Vec<(String, usize)> = heard.collect();
    heard.sort_unstable();
    heard
}

#[test]
fn threads_children_and_what_is_executed_are_heard_each_time_they_block() {
    for tracer in TRACERS {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
        let report = folder.path().join("report");
        let options = ["--children", "--report", report.to_str().unwrap()];
        // A sleep that is over before the thread has gone to sleep, because it lost the CPU on the
        // way, is none.
        until("a run in which each sleep was one, and was heard", || {
            let output = output(watch_behind(in_time(), tracer, &options).arg(sleeper()));
            assert_eq!(output.status.code(), Some(0), "{output:?}");
            let report: Value = serde_json::from_slice(&fs::read(&report).unwrap()).unwrap();
            assert_eq!(report["lost_events"], 0, "{tracer}");
            let heard = blocked(&report);
            let names: Vec<&str> = heard.iter().map(|(name, _)| name.as_str()).collect();
            let least = [30, 20, 40 + 10];
            let all = heard
                .iter()
                .zip(least)
                .all(|((_, times), least)| *times >= least);
            names == ["other", "sleeper", "sleeper"] && all
        });
    }
}

#[test]
fn an_ordinary_user_is_told_the_period_of_his_program() {
    let workload = Programs::get().path("workload");
    for tracer in TRACERS.into_iter().chain(["auto"]) {
        eventually("the period of the workload", || {
            let program = ["--jobs", "80", "beat:20000/500"];
            let mut watch = watch_behind(in_time(), tracer, &["--json"]);
            let output = output(watch.arg(&workload).args(program));
            assert_eq!(output.status.code(), Some(0), "{output:?}");
            let messages = stderr(&output);
            let said = if tracer == "auto" { "tracer" } else { tracer };
            has(messages, &[said]);
            let threads = threads(&output);
            let found = threads.iter().any(|thread| {
                let period = thread["period_ns"].as_f64().unwrap_or(0.0);
                let found = (period / 20e6 - 1.0).abs() < 0.01;
                found && thread["jobs"].as_u64() > Some(40) && thread["demand"].is_object()
            });
            if !found {
                println!("{tracer} finds something else: {threads:?}, {messages}");
            }
            found.then_some(())
        });
    }
}

#[test]
fn a_program_that_is_stopped_stays_so_until_it_is_continued() {
    for tracer in TRACERS {
        let mut command = watch(tracer, &["-q"]);
        command.arg(sleeper()).arg("stop").stdout(Stdio::piped());
        let mut onbeat = Mortal::spawn(&mut command);
        let pid = onbeat.first_line().parse().unwrap();
        eventually("the stop", || {
            matches!(state(pid)?, 'T' | 't').then_some(())
        });
        eventually("the end of onbeat", || {
            signal_to(pid, libc::SIGCONT);
            onbeat.0.try_wait().unwrap()
        });
        assert_eq!(onbeat.status(), Some(0), "{tracer}");
    }
}

#[test]
fn a_signal_to_onbeat_is_passed_on_to_the_program() {
    for tracer in TRACERS {
        let mut command = watch(tracer, &["-q"]);
        command.arg(sleeper()).arg("wait").stdout(Stdio::piped());
        let mut onbeat = Mortal::spawn(&mut command);
        assert_eq!(onbeat.first_line(), "ready");
        assert_eq!(onbeat.ends(libc::SIGUSR1), Some(5), "{tracer}");
    }
}

#[test]
fn of_a_program_that_a_signal_has_ended_it_is_told_what_was_heard_up_to_then() {
    for tracer in TRACERS {
        let mut command = watch(tracer, &[]);
        command.arg(sleeper()).arg("for-ever");
        let mut onbeat = Mortal::spawn(command.stdout(Stdio::piped()).stderr(Stdio::piped()));
        onbeat.first_line();
        assert_eq!(
            onbeat.ends(libc::SIGTERM),
            Some(128 + libc::SIGTERM),
            "{tracer}"
        );
        let told = std::io::read_to_string(onbeat.0.stderr.take().unwrap()).unwrap();
        has(told, &[format!("by the {tracer} tracer")]);
    }
}

#[test]
fn what_ptrace_holds_ends_with_onbeat_and_what_is_preloaded_goes_on() {
    for (tracer, goes_on) in [("ptrace", false), ("preload", true)] {
        let mut command = watch(tracer, &["-q"]);
        command
            .arg(sleeper())
            .arg("for-ever")
            .stdout(Stdio::piped());
        let mut onbeat = Mortal::spawn(&mut command);
        let pid: u32 = onbeat.first_line().parse().unwrap();
        assert_eq!(onbeat.ends(libc::SIGKILL), None);
        if goes_on {
            assert!(matches!(state(pid), Some('S' | 'R' | 'D')), "{tracer}");
            signal_to(pid, libc::SIGKILL);
        }
        until("the end of the program", || {
            state(pid).is_none_or(|state| state == 'Z')
        });
    }
}

#[test]
fn a_static_program_is_heard_by_ptrace_and_onbeat_says_that_it_is_not_by_preload() {
    let program = Programs::get().path("static-sleeper");
    let run = |tracer| output(watch(tracer, &["--json"]).arg(&program).arg("again"));
    let stopped = run("ptrace");
    assert_eq!(stopped.status.code(), Some(0));
    assert!(threads(&stopped)[0]["executed_ns"].as_u64() > Some(0));
    let preloaded = run("preload");
    assert_eq!(preloaded.status.code(), Some(0));
    let messages = stderr(&preloaded);
    has(messages, &["linked statically"]);
    assert_eq!(threads(&preloaded)[0]["executed_ns"], 0);
}

#[test]
fn a_set_user_id_program_loses_its_privileges_and_onbeat_says_so() {
    needs_root!();
    let program = Programs::get().path("raised");
    copy_program("/usr/bin/id", &program);
    fs::set_permissions(&program, fs::Permissions::from_mode(0o4755)).unwrap();
    assert_eq!(fs::metadata(&program).unwrap().uid(), 0);
    let output = output(watch("ptrace", &["--quiet"]).arg(&program).arg("-u"));
    assert_eq!(stdout(&output).trim(), "65534");
    let messages = stderr(&output);
    has(messages, &["privileges"]);
}
