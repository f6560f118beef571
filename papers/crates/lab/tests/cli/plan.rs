//! `onbeat-lab plan` on recordings whose periods are known.

use std::fs;

use serde_json::Value;

use crate::{checkout, lab, stderr, stdout};

fn trace() -> String {
    let path = checkout("tests/traces/apps/mplayer25.l0.txt.gz");
    path.to_str().unwrap().to_owned()
}

fn player(misses: &str) -> Value {
    let output = lab(["plan", "--json", "--misses", misses, &trace()]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let lines = stdout(&output).lines();
    let objects = lines.map(|line| serde_json::from_str::<Value>(line).unwrap());
    let players = objects.filter(|object| object["comm"] == "mplayer");
    players
        .max_by_key(|object| object["jobs"].as_u64())
        .unwrap()
}

#[test]
fn who_may_miss_more_needs_less_and_no_more_are_missed() {
    let (strict, lax) = (player("1%"), player("20%"));
    for (plan, share) in [(&strict, 0.01), (&lax, 0.2)] {
        let period_ns = plan["period_ns"].as_f64().unwrap();
        assert!((period_ns / 40e6 - 1.0).abs() < 0.01, "{plan}");
        let (missed, jobs) = (
            plan["missed"].as_f64().unwrap(),
            plan["jobs"].as_f64().unwrap(),
        );
        assert!(missed <= share * jobs, "{plan}");
    }
    assert!(lax["runtime_ns"].as_u64() < strict["runtime_ns"].as_u64());
}

#[test]
fn it_says_whether_all_fits_and_how_to_set_it() {
    let output = lab(["plan", &trace()]);
    let text = stdout(&output);
    assert!(text.contains("this machine"), "{text}");
    assert!(
        text.contains("chrt --reset-on-fork --deadline --sched-runtime "),
        "{text}"
    );
}

#[test]
fn a_thread_that_no_reservation_can_serve_is_told_with_a_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("jobs.csv");
    let mut text = "task,release_ns,demand_ns\n".to_owned();
    for job in 0..100_u64 {
        text += &format!("greedy,{},25000000\n", job * 20_000_000);
        text += &format!("random,{},500\n", job * job * 7_919_000 % 2_000_000_000);
    }
    fs::write(&file, text).unwrap();
    let output = lab(["plan", file.to_str().unwrap()]);
    assert!(
        stderr(&output).contains("more than one CPU has"),
        "{}",
        stderr(&output)
    );
    assert!(
        stderr(&output).contains("random): it has no period"),
        "{}",
        stderr(&output)
    );
    assert!(stdout(&output).contains("nothing to reserve for"));
}

#[test]
fn a_template_of_callback_isolated_executors_gets_what_is_planned() {
    let folder = tempfile::tempdir().unwrap();
    let template = folder.path().join("template.yaml");
    let plan = player("1%");
    let entry = "  - id: /film@Subscription(/in)\n    affinity: ~\n    policy: SCHED_OTHER\n    priority: 0\n";
    let log = format!("# tid={} | /film@Subscription(/in)\n", plan["tid"]);
    fs::write(&template, format!("callback_groups:\n{entry}{log}")).unwrap();
    let output = lab(["plan", "--cie", template.to_str().unwrap(), &trace()]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let filled = format!(
        "callback_groups:\n  - id: /film@Subscription(/in)\n    affinity: ~\n    policy: SCHED_DEADLINE\n    runtime: {}\n    \
         deadline: {}\n    period: {}\n{log}",
        plan["runtime_ns"], plan["period_ns"], plan["period_ns"]
    );
    assert_eq!(stdout(&output), filled);
}
