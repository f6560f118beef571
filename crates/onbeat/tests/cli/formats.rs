//! `docs/formats.md` lists exactly the fields that are written.

use crate::documented::{documented, written};
use crate::*;

#[test]
fn each_command_writes_the_fields_that_are_documented() {
    let trace = checkout("tests/traces/apps/mplayer25.l0.txt.gz");
    let trace = trace.to_str().unwrap();
    for (command, words) in [
        ("analyze", &[trace][..]),
        ("watch", &["--tracer", "preload", "--", "true"]),
        ("doctor", &[]),
    ] {
        let output = onbeat([&[command, "--json"], words].concat());
        let line = stdout(&output).lines().next().unwrap();
        assert_eq!(
            written(&serde_json::from_str(line).unwrap()),
            documented(&format!("What `onbeat {command} --json` prints"))
        );
    }
}
