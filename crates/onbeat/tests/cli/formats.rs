//! `docs/formats.md` lists exactly the fields that are written.

use crate::documented::{documented, written};
use crate::{checkout, onbeat, stdout};

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
