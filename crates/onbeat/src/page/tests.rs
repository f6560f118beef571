use serde_json::{Value, json};

use super::*;

/// The report of a thread with 50 jobs of 40 ms, the tenth of which is late, and a reservation from
/// the fifth job on.
fn report(comm: &str) -> Value {
    let times = |after: u64| {
        (0..50)
            .map(|job| job * 40_000_000 + after)
            .collect::<Vec<u64>>()
    };
    let mut ended = times(9_000_000);
    ended[9] += 40_000_000;
    json!({
        "threads": [{
            "tid": 7, "started_ticks": 3, "pid": 7, "comm": comm, "state": "taken-over", "period_ns": 40_000_000,
            "confidence": 1.0, "jobs": 50, "missed": 1, "executed_ns": 400_000_000,
            "response_time": {"p50_ns": 9_000_000, "p95_ns": 9_000_000, "p99_ns": 49_000_000, "max_ns": 49_000_000},
        }],
        "elapsed_ns": 2_000_000_000_u64, "lost_events": 0,
        "history": [{
            "tid": 7, "started_ticks": 3, "wakeups_ns": times(0),
            "recent_jobs": {
                "release_ns": times(0), "deadline_ns": times(40_000_000), "ended_ns": ended,
                "executed_ns": vec![8_000_000; 50],
            },
        }],
        "decisions": [{
            "at_ns": 200_000_000, "tid": 7, "started_ticks": 3, "what": "reserved", "why": "a rhythm of <25 Hz>",
            "old": null, "new": {"runtime_ns": 10_000_000, "deadline_ns": 40_000_000, "period_ns": 40_000_000},
        }],
    })
}

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
    assert!(page.contains("a rhythm of &lt;25 Hz&gt;"));
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
