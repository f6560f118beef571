//! The configuration: rules track by themselves, quotas are as written, and reading it anew takes
//! nothing away.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;

use crate::PATIENCE;
use crate::common::{Mortal, eventually, needs_root};
use crate::copied::copy_program;
use crate::machine::{ALICE, BOB, Client, Machine, ROOT, is_ordinary, is_reserved, tids};
use crate::own_state::onbeat;
use crate::realtimekit::listed;

/// A tenth of a CPU.
const TENTH: &str = "1000000 10000000 10000000";

#[test]
fn a_rule_tracks_by_itself_and_reading_anew_takes_away_only_what_nobody_names_any_more() {
    needs_root!();
    let mut machine = Machine::bus();
    let rule = |more: &str| {
        format!(
            "scan = \"50ms\"\n[[rule]]\nname = \"mine\"\nprogram = \"{}\"\n{more}",
            machine.path("workload").display()
        )
    };
    let (first, with_cap) = (rule(""), rule("cap = \"2%\"\n"));
    machine.configure(&first);
    machine.start();
    let workload = machine.workload(ALICE, &["beat:20000/1000"]);
    let sleeper = machine.sleeper(ALICE);
    let mut alice = machine.client(ALICE);
    alice.done(&format!("reserve {} {TENTH}", sleeper.id()));
    let thread = eventually("a reservation", || {
        let mut threads = tids(workload.id()).into_iter();
        let tid = threads.find(|&tid| is_reserved(tid))?;
        (listed(&mut alice, tid)?["state"] == "kept").then_some(tid)
    });
    let hers = |alice: &mut Client| alice.told("statistics")["own-tasks"].clone();
    assert_eq!(
        hers(&mut alice),
        1 + tids(workload.id()).len(),
        "whatever a program calls itself, she is charged for it"
    );

    let mut root = machine.client(ROOT);
    machine.configure("scan = \"eternity\"\n");
    let answer = root.ask("reload");
    assert!(
        answer.contains("onbeat.toml:1: 'eternity' is no length of time: write"),
        "{answer}"
    );
    // Before there is a cap: one that is too small may have the thread's reservation given up.
    assert!(is_reserved(sleeper.id()));
    eventually("its reservation", || is_reserved(thread).then_some(()));

    machine.configure(&with_cap);
    root.done("reload");
    assert!(is_reserved(sleeper.id()));
    eventually("the cap", || {
        let threads = alice.told("list");
        let one = threads
            .as_array()?
            .iter()
            .find(|one| one["thread"] == thread)?;
        let share = one["runtime-ns"].as_f64()? / one["reserved-period-ns"].as_f64()?;
        (share <= 0.0201).then_some(())
    });

    machine.configure("[quota]\nbandwidth = \"15%\"\n");
    machine.signal(libc::SIGHUP);
    eventually("no rule", || {
        machine.log().contains("read again: 0 rules").then_some(())
    });
    eventually("the end of the rule", || is_ordinary(thread).then_some(()));
    assert!(is_reserved(sleeper.id()));
    let other = machine.sleeper(ALICE);
    assert_eq!(
        alice.refused(&format!("reserve {} {TENTH}", other.id())),
        "OverQuota"
    );
}

#[test]
fn a_configuration_that_takes_long_to_read_holds_up_no_call() {
    needs_root!();
    let machine = Machine::new();
    let pipe = machine.path("onbeat.d/50-slow.toml");
    let made = Command::new("mkfifo").arg(&pipe).status();
    assert!(made.expect("coreutils are here").success());
    let [mut root, mut alice] = [ROOT, ALICE].map(|uid| machine.client(uid));
    let sleeper = machine.sleeper(ALICE);
    root.say("reload");
    // Opens once the service reads it.
    let slow = File::options().write(true).open(&pipe).expect("it is made");
    let (answered, heard) = mpsc::channel();
    // A service that waits goes on at last, and the test ends.
    let ends = thread::spawn(move || {
        let in_time = heard.recv_timeout(PATIENCE).is_ok();
        drop(slow);
        in_time
    });
    alice.done(&format!("reserve {} {TENTH}", sleeper.id()));
    let _ = answered.send(());
    assert!(ends.join().expect("it does not panic"));
    assert_eq!(root.answer(), "\"ok\"");
}

#[test]
fn what_a_named_program_started_is_kept_when_the_configuration_is_read_anew() {
    needs_root!();
    let mut machine = Machine::bus();
    let launcher = machine.path("launcher");
    copy_program("/bin/sh", &launcher);
    let rule = |children: bool| {
        format!(
            "scan = \"50ms\"\n[[rule]]\nname = \"mine\"\nprogram = \"{}\"\nchildren = {children}\n",
            launcher.display()
        )
    };
    machine.configure(&rule(true));
    machine.start();
    let mut command = machine.command(ALICE, &launcher);
    let mut started = Mortal::spawn(
        command
            .args(["-c", "read go; \"$0\" random:1000000/1 & read end"])
            .arg(machine.path("workload"))
            .stdin(Stdio::piped())
            .stdout(Stdio::null()),
    );
    let mut input = started.0.stdin.take().unwrap();
    let first = started.id();
    eventually("the rule", || {
        machine.log().contains("tracked by rule mine").then_some(())
    });
    writeln!(input, "go").unwrap();
    let mut root = machine.client(ROOT);
    let mut child = || {
        let threads = root.told("list");
        let threads = threads.as_array()?;
        let child = threads.iter().find(|one| one["process"] != first)?;
        child["process"].as_u64()
    };
    let pid = eventually("the child", &mut child);
    let _child = Child(u32::try_from(pid).unwrap());
    // Before that it is the launcher's copy, which the rule names by itself.
    eventually("its program", || {
        let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
        (name == "workload\n").then_some(())
    });
    let mut other = machine.client(ROOT);
    other.done("reload");
    assert_eq!(child(), Some(pid), "{}", machine.log());
    // Also when the one who started it has ended.
    started.0.kill().unwrap();
    started.0.wait().unwrap();
    eventually("its end", || {
        let threads = other.told("list");
        let of_started = |one: &serde_json::Value| one["process"] == first;
        (!threads.as_array()?.iter().any(of_started)).then_some(())
    });
    other.done("reload");
    assert_eq!(child(), Some(pid), "{}", machine.log());
    machine.configure(&rule(false));
    other.done("reload");
    assert_eq!(child(), None);
}

#[test]
fn a_rule_frees_of_quotas_what_it_names_of_the_user_that_it_names_alone() {
    needs_root!();
    let mut machine = Machine::bus();
    let program = machine.path("workload");
    machine.configure(&format!(
        "scan = \"50ms\"\n[quota]\ntasks = 3\n[[rule]]\nprogram = \"{}\"\nuser = \"{BOB}\"\n\
         [[rule]]\nprogram = \"{}\"\n",
        program.display(),
        program.display()
    ));
    machine.start();
    let threads = ["random:1000000/1"; 7];
    let (_hers, _his) = (
        machine.workload(ALICE, &threads),
        machine.workload(BOB, &threads),
    );
    let mut root = machine.client(ROOT);
    let tracked = |root: &mut Client, uid: u32| {
        let threads = root.told("list");
        let threads = threads.as_array().expect("a list");
        threads.iter().filter(|one| one["user"] == uid).count()
    };
    eventually("all of Bob's threads", || {
        (tracked(&mut root, BOB) == 8).then_some(())
    });
    eventually("as many of Alice's as she may have", || {
        (tracked(&mut root, ALICE) == 3).then_some(())
    });
    assert_eq!(machine.client(BOB).told("statistics")["own-tasks"], 0);
    assert_eq!(machine.client(ALICE).told("statistics")["own-tasks"], 3);
}

/// A process that another one started, and that ends with the test.
struct Child(u32);

impl Drop for Child {
    fn drop(&mut self) {
        // SAFETY: a plain system call. The process does nothing else than to wait for its end.
        unsafe { libc::kill(self.0.cast_signed(), libc::SIGKILL) };
    }
}

#[test]
fn checking_says_what_is_wrong_where_and_what_to_do_and_needs_no_privilege() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("onbeat.toml");
    let check = |path: &Path| {
        let mut command = onbeat(folder.path());
        let output = command
            .args(["daemon", "--check", "--config"])
            .arg(path)
            .output();
        let output = output.unwrap();
        (
            output.status.code(),
            String::from_utf8(output.stderr).unwrap(),
        )
    };
    std::fs::write(&path, "[limits]\ntotal = \"85\"\n").unwrap();
    let (code, said) = check(&path);
    assert_eq!(code, Some(1));
    assert!(
        said.contains("onbeat.toml:2: '85' is no share: write"),
        "{said}"
    );
    std::fs::write(&path, "[limits]\ntotal = \"85%\"\n").unwrap();
    assert_eq!(check(&path), (Some(0), String::new()));
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/onbeat.toml");
    assert_eq!(check(&example), (Some(0), String::new()));
}
