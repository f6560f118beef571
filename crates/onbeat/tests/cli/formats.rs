//! `docs/formats.md` lists exactly the fields that are written.

use crate::documented::{documented, written};
use crate::{checkout, onbeat, stderr, stdout};

#[test]
fn analyze_writes_the_fields_that_are_documented() {
    let trace = checkout("tests/traces/apps/mplayer25.l0.txt.gz");
    let output = onbeat(["analyze", "--json", trace.to_str().unwrap()]);
    let line = stdout(&output).lines().next().unwrap();
    assert_eq!(
        written(&serde_json::from_str(line).unwrap()),
        documented("What `onbeat analyze --json` prints")
    );
}

#[test]
fn watch_writes_the_fields_that_are_documented() {
    let output = onbeat(["watch", "--tracer", "preload", "--json", "--", "true"]);
    let line = stdout(&output).lines().next().unwrap();
    assert_eq!(
        written(&serde_json::from_str(line).unwrap()),
        documented("What `onbeat watch --json` prints")
    );
}

#[test]
fn doctor_writes_the_fields_that_are_documented() {
    let output = onbeat(["doctor", "--json"]);
    assert_eq!(
        written(&serde_json::from_str(stdout(&output)).unwrap()),
        documented("What `onbeat doctor --json` prints")
    );
}

#[test]
fn plan_writes_the_fields_that_are_documented() {
    let trace = checkout("tests/traces/apps/mplayer25.l0.txt.gz");
    let output = onbeat(["plan", "--json", trace.to_str().unwrap()]);
    let line = stdout(&output).lines().next().unwrap();
    assert_eq!(
        written(&serde_json::from_str(line).unwrap()),
        documented("What `onbeat plan --json` prints")
    );
}

#[test]
fn sim_writes_the_fields_that_are_documented() {
    let scenario = checkout("examples/player.toml");
    let output = onbeat(["sim", "--json", scenario.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let mut fields = written(&serde_json::from_str(stdout(&output)).unwrap());
    // The fields of what the tables name in the text of a cell.
    for inner in ["khz", "busy_ns", "idle_ns"] {
        assert!(fields.remove(inner), "{inner}");
    }
    assert_eq!(fields, documented("What `onbeat sim --json` prints"));
}

#[test]
fn a_comparison_has_the_fields_that_are_documented() {
    let trace = checkout("tests/traces/apps/mplayer25.l0.txt.gz");
    let output = onbeat(["sim", "--json", "--from", trace.to_str().unwrap()]);
    let line = stdout(&output).lines().next().unwrap();
    assert_eq!(
        written(&serde_json::from_str(line).unwrap()),
        documented("What `onbeat sim --from --json` prints")
    );
}

#[test]
fn schedulers_are_listed_with_the_fields_that_are_documented() {
    let output = onbeat(["scheduler", "list", "--json"]);
    let line = stdout(&output).lines().next().unwrap();
    assert_eq!(
        written(&serde_json::from_str(line).unwrap()),
        documented("What `onbeat scheduler list --json` prints")
    );
}

#[test]
fn the_state_of_sched_ext_has_the_fields_that_are_documented() {
    let output = onbeat(["scheduler", "status", "--json"]);
    assert_eq!(
        written(&serde_json::from_str(stdout(&output)).unwrap()),
        documented("What `onbeat scheduler status --json` prints")
    );
}
