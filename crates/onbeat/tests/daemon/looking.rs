//! The live view is seen by its user, and by no other.

use crate::documented::{documented, written};
use crate::prelude::*;
use crate::terminal::Terminal;

/// `onbeat top` as Alice runs it.
fn top(machine: &Machine) -> Command {
    let mut command = machine.onbeat(ALICE);
    command.arg("top");
    command
}

#[test]
fn a_lock_is_seen_on_its_owners_screen_and_on_nobody_elses() {
    let machine = Machine::new();
    let workload = machine.workload(ALICE, &["beat:20000/1000"]);
    let mut screen = Terminal::start(&mut top(&machine));
    screen.shows("No thread is tracked yet");
    let mut alice = machine.client(ALICE);
    alice.track(&workload);
    until("the period", || {
        let line = screen.line_with("workload", "kept");
        let nearly = ["20 ms", "20.0", "19.9"];
        nearly.iter().any(|period| line.contains(period))
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
    let machine = Machine::new();
    let workload = machine.workload(ALICE, &["beat:20000/1000"]);
    let mut alice = machine.client(ALICE);
    let mut bob = machine.client(BOB);
    alice.track(&workload);
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
            assert_eq!(seen[list], json!([]), "{seen}");
        }
    }
    // No job ended after the end of time.
    let later = alice.told(&format!("progress 0 {}", u64::MAX));
    assert_eq!(later["jobs"][0][1], json!([]), "{later}");
}

#[test]
fn an_application_has_the_sums_over_its_threads_for_its_user_and_for_root() {
    let machine = Machine::new();
    let workload = machine.workload(ALICE, &["beat:20000/1000", "beat:40000/1000"]);
    let [mut alice, mut bob, mut root] = [ALICE, BOB, 0].map(|uid| machine.client(uid));
    alice.track(&workload);
    let application = eventually("two reservations", || {
        let told = alice.told("applications");
        let one = told.as_array()?.first()?;
        (one["by-reservation"] == 2 && one["jobs"].as_u64()? > 0).then(|| one.clone())
    });
    assert_eq!(application["pid"], workload.id());
    let list = alice.list();
    let of_it = list.iter().filter(|it| it["application"] == workload.id());
    assert_eq!(application["living"], of_it.count());
    let documented = documented("What `--report` writes");
    for field in written(&application) {
        assert!(documented.contains(&field.replace('-', "_")), "{field}");
    }
    assert_eq!(bob.told("applications"), json!([]));
    assert_eq!(root.told("applications")[0]["pid"], workload.id());
}

#[test]
fn a_service_that_goes_away_and_comes_back_is_told_on_the_screen() {
    let mut machine = Machine::new();
    let mut screen = Terminal::start(&mut top(&machine));
    screen.shows("No thread is tracked yet");
    machine.end(libc::SIGTERM);
    screen.shows("the service does not run");
    machine.start();
    until("the service on the screen", || {
        !screen.text().contains("the service does not run")
    });
    screen.process.signal(libc::SIGTERM);
    assert!(screen.ends().success());
}

#[test]
fn what_is_printed_once_has_the_fields_that_are_documented() {
    let machine = Machine::new();
    let workload = machine.workload(ALICE, &["beat:20000/1000"]);
    let mut alice = machine.client(ALICE);
    alice.track(&workload);
    let line = eventually("a reservation", || {
        let output = top(&machine).arg("--json").output().unwrap();
        assert!(output.status.success());
        let mut lines = stdout(&output).lines().map(serde_json::from_str::<Value>);
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
    let table = top(&machine).arg("--once").output().unwrap();
    has(stdout(&table), &["application, thread", "\n  workload"]);
}
