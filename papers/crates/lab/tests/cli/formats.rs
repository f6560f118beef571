//! `papers/docs/formats.md` lists exactly the fields that are written.

use crate::documented::{documented, written};
use crate::{checkout, lab, stderr, stdout};

#[test]
fn what_is_printed_has_the_fields_that_are_documented() {
    let trace = checkout("tests/traces/apps/mplayer25.l0.txt.gz");
    let trace = trace.to_str().unwrap();
    let scenario = checkout("papers/examples/player.toml");
    let scenario = scenario.to_str().unwrap();
    // The fields of what the tables name in the text of a cell.
    let inner = ["khz", "busy_ns", "idle_ns"];
    #[rustfmt::skip]
    let rows: [(&[&str], &str, &[&str]); 5] = [
        (&["plan", "--json", trace], "plan", &[]),
        (&["sim", "--json", scenario], "sim", &inner),
        (&["sim", "--json", "--from", trace], "sim --from", &[]),
        (&["scheduler", "list", "--json"], "scheduler list", &[]),
        (&["scheduler", "status", "--json"], "scheduler status", &[]),
    ];
    for (args, command, inner) in rows {
        let output = lab(args);
        let line = stdout(&output).lines().next();
        let line = line.unwrap_or_else(|| panic!("{command}: {}", stderr(&output)));
        let mut fields = written(&serde_json::from_str(line).unwrap());
        for field in inner {
            assert!(fields.remove(*field), "{field}");
        }
        let heading = format!("What `onbeat-lab {command} --json` prints");
        assert_eq!(fields, documented(&heading), "{command}");
    }
}
