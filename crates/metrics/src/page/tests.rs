use std::collections::{BTreeMap, BTreeSet};

use onbeat_control::{DryRun, Next, Settings, drive};
use onbeat_model::{Capacity, Sensor};
use onbeat_sense::recording::{self, Replay};

use super::*;
use crate::{ALL, MetricKind};

fn page() -> String {
    let traces = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/traces");
    let recording = recording::read(format!("{traces}/onbeat/mplayer25.reserved.gz")).unwrap();
    let mut sensor = Replay::new(recording);
    sensor.track_all();
    let capacity = Capacity {
        cpus: 2,
        admissible: Bandwidth::from_cpus(1.8),
        shortest_runtime: Span::from_ns(1024),
        shortest_period: Span::from_us(100),
        longest_period: Span::from_secs(4),
    };
    let mut controller = Controller::new(Settings::default(), DryRun::new(capacity));
    let mut decisions = [0; COUNTED.len()];
    let mut page = String::new();
    drive(&mut sensor, &mut controller, |sensor, controller| {
        let made = controller.journal().count();
        decisions[1] += made as u64;
        if controller.held().count() == 2 {
            page = of(controller, &decisions, Bandwidth::ZERO, sensor.now());
        }
        Next::Continue
    })
    .unwrap();
    page
}

/// The families of a page, each with its series: a strict reader of the format. It wants HELP, then
/// TYPE, then all series of the metric, each once, with the labels that the table has, and a number
/// that is not below zero.
fn read(page: &str) -> BTreeMap<&str, BTreeMap<&str, f64>> {
    let mut families: BTreeMap<&str, BTreeMap<&str, f64>> = BTreeMap::new();
    let mut lines = page.strip_suffix('\n').unwrap().lines().peekable();
    while let Some(help) = lines.next() {
        let (name, told) = help
            .strip_prefix("# HELP ")
            .unwrap()
            .split_once(' ')
            .unwrap();
        let metric = ALL.iter().find(|metric| metric.name == name).unwrap();
        assert_eq!(told, metric.help);
        let kind = format!("# TYPE {name} {}", metric.kind.name());
        assert_eq!(lines.next(), Some(kind.as_str()));
        let mut series = BTreeMap::new();
        while let Some(line) = lines.next_if(|line| !line.starts_with('#')) {
            let (who, value) = line.rsplit_once(' ').unwrap();
            let labels = who.strip_prefix(name).unwrap();
            assert_eq!(labels_of(labels), metric.labels, "{line}");
            let value: f64 = value.parse().unwrap();
            assert!(value.is_finite() && value >= 0.0, "{line}");
            assert!(series.insert(labels, value).is_none(), "twice: {line}");
        }
        assert!(families.insert(name, series).is_none(), "twice: {name}");
    }
    families
}

/// The names of the labels in braces; their values are quoted, with escapes.
fn labels_of(mut text: &str) -> Vec<&str> {
    let mut names = Vec::new();
    if text.is_empty() {
        return names;
    }
    text = text.strip_prefix('{').unwrap();
    loop {
        let (name, value) = text.split_once("=\"").unwrap();
        assert!(name.bytes().all(|byte| byte.is_ascii_lowercase()), "{name}");
        names.push(name);
        let mut escaped = false;
        let end = value.find(|character| {
            let ends = character == '"' && !escaped;
            escaped = character == '\\' && !escaped;
            ends
        });
        let rest = &value[end.unwrap() + 1..];
        match rest.strip_prefix(',') {
            Some(more) => text = more,
            None => {
                assert_eq!(rest, "}");
                return names;
            }
        }
    }
}

#[test]
fn the_page_has_every_metric_of_the_table_once_and_tells_how_things_stand() {
    let page = page();
    let families = read(&page);
    let table: BTreeSet<&str> = ALL.iter().map(|metric| metric.name).collect();
    assert!(families.keys().copied().eq(table));
    for (name, series) in &families {
        assert!(!series.is_empty(), "{name}");
    }
    let one = |name: &str| families[name][""];
    assert_eq!(one("onbeat_threads_reserved"), 2.0);
    assert!(one("onbeat_threads_tracked") >= 2.0);
    assert_eq!(one("onbeat_reserved_limit_cpus"), 1.7, "85% of two CPUs");
    let each = |name: &str| families[name].values().copied().collect::<Vec<f64>>();
    let reserved: f64 = each("onbeat_thread_reserved_cpus").iter().sum();
    assert!((one("onbeat_reserved_cpus") - reserved).abs() < 1e-9);
    let of_applications: f64 = each("onbeat_application_jobs_total").iter().sum();
    assert_eq!(of_applications, one("onbeat_jobs_total"));
    let served = &families["onbeat_application_threads"];
    let by_reservation = served
        .iter()
        .filter(|(who, _)| who.contains("means=\"reservation\""));
    assert!(by_reservation.map(|(_, threads)| threads).sum::<f64>() >= 2.0);
    let jobs: f64 = each("onbeat_thread_jobs_total").iter().sum();
    assert!(one("onbeat_jobs_total") >= jobs && jobs > 0.0);
    for period in each("onbeat_thread_period_seconds") {
        assert!((period - 0.04).abs() < 0.001, "{period}");
    }
}

#[test]
fn names_follow_the_rules_of_prometheus() {
    for metric in ALL {
        let legal = |byte: u8| byte.is_ascii_lowercase() || byte == b'_';
        assert!(metric.name.bytes().all(legal), "{}", metric.name);
        assert_eq!(
            metric.name.ends_with("_total"),
            metric.kind == MetricKind::Counter,
            "{}",
            metric.name
        );
        assert!(!metric.help.contains(['\n', '\\']), "{}", metric.name);
    }
}

#[test]
fn the_documented_table_and_the_dashboard_are_of_these_metrics() {
    let checkout = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let documented = fs::read_to_string(format!("{checkout}/docs/metrics.md")).unwrap();
    let rows = ALL.iter().map(|metric| {
        let labels: Vec<String> = metric
            .labels
            .iter()
            .map(|label| format!("`{label}`"))
            .collect();
        format!(
            "| `{}` | {} | {} | {} | {} |",
            metric.name,
            metric.kind.name(),
            metric.unit,
            labels.join(", "),
            metric.help
        )
    });
    let table: Vec<String> = rows.collect();
    assert!(
        documented.contains(&table.join("\n")),
        "docs/metrics.md is to have this table:\n{}",
        table.join("\n")
    );
    let dashboard = fs::read_to_string(format!("{checkout}/docs/dashboards/onbeat.json")).unwrap();
    let parsed: serde_json::Value = serde_json::from_str(&dashboard).unwrap();
    let panels = parsed["panels"].as_array().unwrap();
    let targets = panels
        .iter()
        .flat_map(|panel| panel["targets"].as_array().unwrap());
    let mut asked = 0;
    for target in targets {
        let expression = target["expr"].as_str().unwrap();
        let words = expression.split(|c: char| !c.is_ascii_lowercase() && c != '_');
        for word in words.filter(|word| word.starts_with("onbeat_") || word.starts_with("process_"))
        {
            assert!(ALL.iter().any(|metric| metric.name == word), "{expression}");
            asked += 1;
        }
    }
    assert!(asked >= 10, "{asked}");
}
