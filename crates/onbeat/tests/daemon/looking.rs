//! The live view is seen by its user, and by no other.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::common::{eventually, needs_root};
use crate::copied::copy_program;
use crate::documented::{documented, written};
use crate::machine::{ALICE, BOB, Machine};
use crate::terminal::Terminal;

/// `onbeat top` as this user runs it.
fn top(machine: &Machine, uid: u32) -> Command {
    let program = machine.path("onbeat");
    if !program.exists() {
        copy_program(env!("CARGO_BIN_EXE_onbeat"), &program);
    }
    let mut command = machine.command(uid, Path::new(&program));
    command.arg("top");
    command
}

#[test]
fn a_lock_is_seen_on_its_owners_screen_and_on_nobody_elses() {
    needs_root!();
    let machine = Machine::new();
    let workload = machine.workload(ALICE, &["beat:20000/1000"]);
    let mut screen = Terminal::start(&mut top(&machine, ALICE));
    screen.shows("No thread is tracked yet");
    let mut alice = machine.client(ALICE);
    alice.done(&format!("track {}", workload.id()));
    eventually("the period", || {
        let line = screen.line_with("workload", "kept");
        let nearly = ["20 ms", "20.0", "19.9"];
        nearly
            .iter()
            .any(|period| line.contains(period))
            .then_some(())
    });

    screen.press("\r");
    screen.shows("response, by second");
    screen.press("\x1b");
    screen.line_with("workload", "kept");
    alice.done(&format!("untrack {}", workload.id()));
    screen.shows("No thread is tracked yet");
    assert!(screen.closes().success());
}

#[test]
fn a_stranger_sees_neither_threads_nor_jobs_nor_decisions() {
    needs_root!();
    let machine = Machine::new();
    let workload = machine.workload(ALICE, &["beat:20000/1000"]);
    let mut alice = machine.client(ALICE);
    let mut bob = machine.client(BOB);
    alice.done(&format!("track {}", workload.id()));
    let question = format!("progress {} 0", workload.id());
    let lists = ["applications", "threads", "jobs", "decisions"];
    eventually("threads with jobs and decisions", || {
        let seen = alice.told(&question);
        let jobs = seen["jobs"].as_array()?.iter();
        let most = jobs.filter_map(|of| Some(of[1].as_array()?.len())).max()?;
        let is_full = |list: &str| seen[list].as_array().is_some_and(|of| !of.is_empty());
        let is_hers = seen["threads"][0]["user"] == ALICE;
        (is_hers && most > 3 && lists.into_iter().all(is_full)).then_some(())
    });
    for question in [&question, "progress 0 0"] {
        let seen = bob.told(question);
        for list in lists {
            assert_eq!(seen[list].as_array().map(Vec::len), Some(0), "{seen}");
        }
    }
    // No job ended after the end of time.
    let later = alice.told(&format!("progress 0 {}", u64::MAX));
    assert_eq!(
        later["jobs"][0][1].as_array().map(Vec::len),
        Some(0),
        "{later}"
    );
}

#[test]
fn an_application_has_the_sums_over_its_threads_for_its_user_and_for_root() {
    needs_root!();
    let machine = Machine::new();
    let workload = machine.workload(ALICE, &["beat:20000/1000", "beat:40000/1000"]);
    let [mut alice, mut bob, mut root] = [ALICE, BOB, 0].map(|uid| machine.client(uid));
    alice.done(&format!("track {}", workload.id()));
    let application = eventually("two reservations", || {
        let told = alice.told("applications");
        let one = told.as_array()?.first()?;
        (one["by-reservation"] == 2 && one["jobs"].as_u64()? > 0).then(|| one.clone())
    });
    assert_eq!(application["pid"], workload.id());
    let threads = alice.told("list");
    let threads = threads.as_array().expect("a list");
    let of_it = threads
        .iter()
        .filter(|thread| thread["application"] == workload.id());
    assert_eq!(Some(of_it.count() as u64), application["living"].as_u64());
    let documented = documented("What `--report` writes");
    for field in written(&application) {
        assert!(documented.contains(&field.replace('-', "_")), "{field}");
    }
    assert_eq!(bob.told("applications").as_array().map(Vec::len), Some(0));
    assert_eq!(root.told("applications")[0]["pid"], workload.id());
}

#[test]
fn a_service_that_goes_away_and_comes_back_is_told_on_the_screen() {
    needs_root!();
    let mut machine = Machine::new();
    let mut screen = Terminal::start(&mut top(&machine, ALICE));
    screen.shows("No thread is tracked yet");
    machine.end(libc::SIGTERM);
    screen.shows("the service does not run");
    machine.start();
    eventually("the service on the screen", || {
        (!screen.text().contains("the service does not run")).then_some(())
    });
    screen.signal(libc::SIGTERM);
    assert!(screen.ends().success());
}

#[test]
fn what_is_printed_once_has_the_fields_that_are_documented() {
    needs_root!();
    let machine = Machine::new();
    let workload = machine.workload(ALICE, &["beat:20000/1000"]);
    let mut alice = machine.client(ALICE);
    alice.done(&format!("track {}", workload.id()));
    let line = eventually("a reservation", || {
        let output = top(&machine, ALICE).arg("--json").output();
        let output = output.expect("it can be run");
        assert!(output.status.success());
        let text = String::from_utf8(output.stdout).expect("it is text");
        let mut lines = text.lines().map(serde_json::from_str::<Value>);
        lines.find_map(|line| line.ok().filter(|line| line["reservation"].is_object()))
    });
    let mut fields = written(&line);
    // The fields of what the table names in the text of a cell.
    fields.extend(written(&line["reservation"]));
    let mut expected = documented("What `onbeat top --json` prints");
    for inner in ["runtime_ns", "deadline_ns", "period_ns"] {
        expected.insert(inner.to_owned());
    }
    assert_eq!(fields, expected);
    let table = top(&machine, ALICE).arg("--once").output();
    let table = String::from_utf8(table.expect("it can be run").stdout).expect("it is text");
    assert!(
        table.starts_with("application, thread") && table.contains("\n  workload"),
        "{table}"
    );
}
