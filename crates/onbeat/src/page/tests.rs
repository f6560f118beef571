use serde_json::{Value, json};

use super::*;
use crate::replay::tests::report;

fn page(report: Value) -> String {
    of(&serde_json::from_value(report).unwrap(), "film")
}

#[test]
fn nothing_is_fetched_or_executed_and_names_are_only_text() {
    let page = page(report("<script>\"'&"));
    for forbidden in [
        "<script", "<link", "http:", "https:", "url(", "@import", "<img", "onload",
    ] {
        assert!(!page.contains(forbidden), "{forbidden}");
    }
    assert!(page.contains("&lt;script&gt;&quot;&#39;&amp;"));
    assert!(page.contains("so it was &lt;reserved&gt;"));
}

#[test]
fn what_is_missing_or_does_not_fit_together_is_left_out() {
    let mut none = report("player");
    none["history"] = json!([]);
    none["decisions"] = json!([]);
    assert!(!page(none).contains("<svg"));
    let mut uneven = report("player");
    uneven["history"][0]["recent_jobs"]["ended_ns"] = json!([5, 1]);
    uneven["history"][0]["wakeups_ns"] = json!([u64::MAX, 0, 7]);
    uneven["threads"][0]["period_ns"] = json!(0);
    assert!(page(uneven).contains("</html>"));
    let empty = json!({"threads": [], "elapsed_ns": 0});
    assert!(page(empty).contains("0 threads with a period"));
}
