//! A task that calls `sched_yield()` in the middle of its jobs.

use std::path::Path;

use onbeat_model::Span;
use onbeat_sim::scenario::figures::GroupFigures;
use onbeat_sim::scenario::{Outputs, ScenarioRun, parse};

/// How 1,000 jobs fared, each of which yields three times.
fn jobs(scheduling: &str, beside: &str) -> GroupFigures {
    let text = format!(
        r#"
duration = "10s"
[[task]]
name = "yields"
arrival = {{ periodic = "10ms" }}
demand = {{ constant = "2ms" }}
bursts = 4
scheduling = {{ {scheduling} }}
{beside}
"#
    );
    let scenario = parse(&text, Path::new("test.toml")).unwrap();
    let run = ScenarioRun::new(&scenario);
    let mut figures = run.run(Outputs::default(), |_| {}).unwrap();
    figures.tasks.swap_remove(0)
}

fn longest(figures: &GroupFigures) -> Span {
    figures.response_time.unwrap().max_ns
}

#[test]
fn under_a_reservation_each_yield_costs_the_rest_of_the_period() {
    let reserved = jobs(r#"deadline = { runtime = "5ms", period = "10ms" }"#, "");
    assert_eq!((reserved.missed, reserved.exhaustions), (1_000, 0));
    let ordinary = jobs("nice = 0", "");
    assert_eq!((ordinary.missed, longest(&ordinary)), (0, Span::from_ms(2)));
}

#[test]
fn a_thread_that_yields_stalls_once_at_most_under_onbeat() {
    let kept = jobs("nice = 0", "[onbeat]");
    assert!(kept.jobs == 1_000 && kept.missed <= 2, "{kept:?}");
    assert!(longest(&kept) <= Span::from_ms(13), "{kept:?}");
}
