//! `papers/docs/formats.md` lists exactly the fields that are written.

use crate::documented::{documented, written};
use crate::{checkout, lab, stderr, stdout};

#[test]
fn plan_writes_the_fields_that_are_documented() {
    let trace = checkout("tests/traces/apps/mplayer25.l0.txt.gz");
    let output = lab(["plan", "--json", trace.to_str().unwrap()]);
    let line = stdout(&output).lines().next().unwrap();
    assert_eq!(
        written(&serde_json::from_str(line).unwrap()),
        documented("What `onbeat-lab plan --json` prints")
    );
}

#[test]
fn sim_writes_the_fields_that_are_documented() {
    let scenario = checkout("papers/examples/player.toml");
    let output = lab(["sim", "--json", scenario.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let mut fields = written(&serde_json::from_str(stdout(&output)).unwrap());
    // The fields of what the tables name in the text of a cell.
    for inner in ["khz", "busy_ns", "idle_ns"] {
        assert!(fields.remove(inner), "{inner}");
    }
    assert_eq!(fields, documented("What `onbeat-lab sim --json` prints"));
}

#[test]
fn a_comparison_has_the_fields_that_are_documented() {
    let trace = checkout("tests/traces/apps/mplayer25.l0.txt.gz");
    let output = lab(["sim", "--json", "--from", trace.to_str().unwrap()]);
    let line = stdout(&output).lines().next().unwrap();
    assert_eq!(
        written(&serde_json::from_str(line).unwrap()),
        documented("What `onbeat-lab sim --from --json` prints")
    );
}

#[test]
fn schedulers_are_listed_with_the_fields_that_are_documented() {
    let output = lab(["scheduler", "list", "--json"]);
    let line = stdout(&output).lines().next().unwrap();
    assert_eq!(
        written(&serde_json::from_str(line).unwrap()),
        documented("What `onbeat-lab scheduler list --json` prints")
    );
}

#[test]
fn the_state_of_sched_ext_has_the_fields_that_are_documented() {
    let output = lab(["scheduler", "status", "--json"]);
    assert_eq!(
        written(&serde_json::from_str(stdout(&output)).unwrap()),
        documented("What `onbeat-lab scheduler status --json` prints")
    );
}
