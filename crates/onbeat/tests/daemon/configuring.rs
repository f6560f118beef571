//! The configuration: rules track by themselves, quotas are as written, and reading it anew takes nothing away.

use std::path::Path;

use crate::common::{can_run, eventually, onbeat};
use crate::machine::{ALICE, Machine, ROOT, is_ordinary, is_reserved, tids};

/// A tenth of a CPU.
const TENTH: &str = "1000000 10000000 10000000";

#[test]
fn a_rule_tracks_by_itself_and_reading_anew_takes_away_only_what_nobody_names_any_more() {
    if !can_run("a_rule_tracks_by_itself_and_reading_anew_takes_away_only_what_nobody_names") {
        return;
    }
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
        tids(workload.id())
            .into_iter()
            .find(|&tid| is_reserved(tid))
    });
    assert_eq!(
        alice.told("statistics")["own-tasks"],
        1,
        "a rule's threads are not charged to her"
    );

    let mut root = machine.client(ROOT);
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

    machine.configure("scan = \"eternity\"\n");
    let answer = root.ask("reload");
    assert!(
        answer.contains("onbeat.toml:1: 'eternity' is no length of time: write"),
        "{answer}"
    );
    assert!(is_reserved(sleeper.id()) && is_reserved(thread));

    machine.configure("[quota]\nbandwidth = \"15%\"\n");
    machine.signal(libc::SIGHUP);
    eventually("the end of the rule", || is_ordinary(thread).then_some(()));
    assert!(is_reserved(sleeper.id()));
    let other = machine.sleeper(ALICE);
    assert_eq!(
        alice.refused(&format!("reserve {} {TENTH}", other.id())),
        "OverQuota"
    );
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
