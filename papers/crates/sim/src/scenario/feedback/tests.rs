use std::path::Path;

use crate::scenario::{Outputs, ScenarioFigures, ScenarioRun, parse};

/// A film of two kinds of frames that plays alone for 5 s, and 60 s in all beside four hogs.
fn film(loop_: &str, player: &str) -> ScenarioFigures {
    let text = format!(
        r#"
duration = "60s"
{loop_}
[[task]]
name = "player"
arrival = {{ periodic = "40ms" }}
demand = {{ frames = {{ group = ["8ms", "20ms"], variation = 0.05 }} }}
{player}
[[task]]
name = "hog"
count = 4
arrival = {{ after = "1s" }}
phase = "5s"
demand = "endless"
tracked = false
"#
    );
    let scenario = parse(&text, Path::new("film.toml")).unwrap();
    ScenarioRun::new(&scenario)
        .run(Outputs::default(), |_| {})
        .unwrap()
}

fn late(figures: &ScenarioFigures) -> f64 {
    figures.tasks[0].missed as f64 / figures.tasks[0].jobs as f64
}

#[test]
fn nothing_is_reserved_by_default_and_a_film_beside_hogs_is_late() {
    assert!(late(&film("", "")) > 0.8);
}

#[test]
fn the_budget_of_lfspp_is_the_mean_rate_and_the_spread() {
    // 14 ms every 40 ms: twice the mean serves the long frames, a tenth more does not.
    let spread = |x: f64| film(&format!("[feedback]\nmethod = \"lfs++\"\nspread = {x}"), "");
    assert!(late(&spread(1.0)) < 0.02);
    let papers = spread(0.1);
    assert!(late(&papers) > 0.05, "{papers:?}");
    // One change a sample at most, in 60 s.
    assert!(papers.changes.unwrap() <= 60, "{papers:?}");
}

#[test]
fn an_adaptive_reservation_that_knows_the_scheme_changes_with_each_job() {
    let with = |group: u32| {
        let adaptive = format!("[feedback]\nmethod = \"adaptive\"\ngroup = {group}\nspread = 0.2");
        film(&adaptive, "rho = 0.99")
    };
    let figures = with(2);
    assert!(late(&figures) < 0.02, "{figures:?}");
    assert!(figures.changes.unwrap() > 1000, "{figures:?}");
    assert!(with(1).changes < figures.changes, "one budget for all");
}

#[test]
fn who_marks_nothing_gets_no_adaptive_reservation() {
    assert_eq!(
        film("[feedback]\nmethod = \"adaptive\"", "").changes,
        Some(0)
    );
}

#[test]
fn lfs_swings_around_a_budget_that_it_never_knows() {
    let figures = film("[feedback]\nmethod = \"lfs\"", "");
    assert!(figures.tasks[0].exhaustions > 20, "{figures:?}");
    assert!(late(&figures) < 0.5, "{figures:?}");
}

#[test]
fn time_goes_on_when_the_last_task_has_ended() {
    let text = r#"
duration = "10s"
[feedback]
method = "lfs++"
[[task]]
name = "player"
arrival = { recorded = { file = "jobs.csv" } }
"#;
    let folder = tempfile::tempdir().unwrap();
    let jobs = "release_ns,demand_ns\n0,1000\n1000000,1000\n";
    std::fs::write(folder.path().join("jobs.csv"), jobs).unwrap();
    let scenario = parse(text, &folder.path().join("two-jobs.toml")).unwrap();
    let figures = ScenarioRun::new(&scenario)
        .run(Outputs::default(), |_| {})
        .unwrap();
    assert_eq!(figures.jobs, 2);
}
