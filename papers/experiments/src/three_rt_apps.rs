//! The three tasks of LFS++'s Table I on one CPU in virtual time: under the kernel's default
//! scheduler, under LFS++ as the paper has it, under onbeat, and under reservations set by hand,
//! from known periods and execution times.

use std::path::Path;

use anyhow::Context;

use crate::machine::{Machine, OnbeatReport, ThreadFigures};
use crate::plot::{Axis, Corner, Figure, Line, Look, distribution};
use crate::results::{Table, or_dash, percent};
use crate::rt_app::Log;
use crate::vm::{Ended, Guest};

const NAME: &str = "three-rt-apps";

const IMAGES: u64 = 2;
const SECONDS: u64 = 8;
/// Time to find the periods.
const LEAVE_OUT_S: f64 = 3.0;
/// The tasks take 79% of the only CPU: the cap is what the kernel admits beside its fair server.
const CAP: &str = "--cap=90%";

/// Each way: the guest's folder, and its name.
const WAYS: [(&str, &str); 6] = [
    ("default", "default scheduler"),
    (BY_HAND, "set by hand"),
    ("lfspp", "LFS++"),
    ("lfspp-alone", "LFS++, no fair server"),
    ("onbeat", "onbeat"),
    ("onbeat-alone", "onbeat, no fair server"),
];
const BY_HAND: &str = "by-hand";

/// By how much the reservations set by hand exceed the nominal execution times.
const HAND_SPREAD: f64 = 0.1;

/// LFS++, Table I: name, period and load.
const TABLE_ONE: [(&str, u64, f64); 3] = [
    ("short", 3505, 0.30),
    ("middle", 8220, 0.28),
    ("long", 100_000, 0.21),
];

/// The share of jobs in time in the paper (Fig. 6), of which run and task.
const PAPER_IN_TIME: [(&str, &str, f64); 2] = [
    ("default scheduler", "short", 0.57),
    ("LFS++", "short", 0.95),
];

/// A task's execution time in us, and its reservation by hand.
fn run_and_by_hand_us(period_us: u64, load: f64) -> [u64; 2] {
    let run_us = period_us as f64 * load;
    [run_us, run_us * (1.0 + HAND_SPREAD)].map(|us| us.round() as u64)
}

/// A task under one of the ways.
struct TaskRun {
    way: &'static str,
    name: &'static str,
    task: &'static str,
    period_us: u64,
    by_hand: f64,
    /// Of each image.
    logs: Vec<Log>,
    seen: Vec<ThreadFigures>,
}

pub(crate) fn run(machine: &Machine) -> anyhow::Result<()> {
    let booted: Vec<Ended> = (0..IMAGES)
        .map(|image| boot(machine, image))
        .collect::<anyhow::Result<_>>()?;
    let mut runs = Vec::new();
    for (way, name) in WAYS {
        for (task, period_us, load) in TABLE_ONE {
            let [_, by_hand_us] = run_and_by_hand_us(period_us, load);
            let mut run = TaskRun {
                way,
                name,
                task,
                period_us,
                by_hand: by_hand_us as f64 / period_us as f64,
                logs: Vec::new(),
                seen: Vec::new(),
            };
            for folder in booted.iter().map(|ended| ended.folder.join(way)) {
                run.logs.push(Log::read(&folder, task)?);
                let report = folder.join("report.json");
                if report.exists() {
                    let threads = OnbeatReport::read(&report)?;
                    run.seen
                        .extend(threads.into_iter().find(|t| t.comm.starts_with(task)));
                }
            }
            runs.push(run);
        }
    }
    draw(machine.out(), &runs)?;
    let ran = booted.first().context("no image")?.ran(machine);
    machine.publish(&ran, NAME, &table(&runs));
    Ok(())
}

fn boot(machine: &Machine, image: u64) -> anyhow::Result<Ended> {
    let words = TABLE_ONE.map(|(name, period_us, load)| {
        let [run_us, by_hand_us] = run_and_by_hand_us(period_us, load);
        format!("{name}:{period_us}:{run_us}:{by_hand_us}")
    });
    let own = std::env::current_exe().context("cannot tell where this program is")?;
    Guest::new(NAME)
        .image(image)
        .need(own)
        .set("TASKS", words.join(" "))
        .set("RUN_SECONDS", SECONDS)
        .set("HOGS", 0)
        .set("ONBEAT", CAP)
        .boot(machine)
}

fn table(runs: &[TaskRun]) -> Table {
    let share = |share| percent(share, 1);
    Table::of(runs, |run| {
        let ms = |ms: f64| format!("{ms:.2} ms");
        let jobs = Log::joined(&run.logs).jobs(LEAVE_OUT_S);
        let paper = PAPER_IN_TIME.iter();
        let mut paper = paper.filter(|(of, task, _)| (*of, *task) == (run.name, run.task));
        let mean = |of: fn(&ThreadFigures) -> f64| {
            let sum: f64 = run.seen.iter().map(of).sum();
            (!run.seen.is_empty()).then(|| sum / run.seen.len() as f64)
        };
        let by_hand = (run.way == BY_HAND).then_some(run.by_hand);
        let used = mean(|thread| thread.bandwidth_used);
        let reserved = mean(|thread| thread.bandwidth_reserved).or(by_hand);
        let ratio = reserved
            .zip(used)
            .map(|(reserved, used)| reserved / used.max(1e-9));
        let changes = mean(|thread| thread.changes as f64);
        [
            ("run", run.name.to_owned()),
            ("task", run.task.to_owned()),
            ("period", format!("{:.3} ms", run.period_us as f64 / 1000.0)),
            ("jobs", jobs.jobs.to_string()),
            ("in time", in_time(&run.logs, jobs.miss_ratio())),
            (
                "paper",
                or_dash(paper.next_back(), |(.., share)| percent(*share, 0)),
            ),
            ("p50", ms(jobs.response_p50_ms)),
            ("p99", ms(jobs.response_p99_ms)),
            ("longest", ms(jobs.response_max_ms)),
            ("used", or_dash(used, share)),
            ("reserved", or_dash(reserved, share)),
            ("ratio", or_dash(ratio, |ratio| format!("{ratio:.2}"))),
            ("changes", or_dash(changes, |n| format!("{:.0}", n.round()))),
        ]
    })
}

/// The share of jobs in time, with those of the worst and of the best image if they differ.
fn in_time(images: &[Log], missed: f64) -> String {
    let share = |missed: f64| percent(1.0 - missed, 2);
    let each = || images.iter().map(|log| log.jobs(LEAVE_OUT_S).miss_ratio());
    let (best, worst) = (
        share(each().fold(1.0, f64::min)),
        share(each().fold(0.0, f64::max)),
    );
    match best == worst {
        true => share(missed),
        false => format!("{} ({worst} to {best})", share(missed)),
    }
}

/// Fig. 6: how the shortest task's response times are distributed.
fn draw(out: &Path, runs: &[TaskRun]) -> anyhow::Result<()> {
    let (shortest, period_us, _) = TABLE_ONE[0];
    let of_shortest = runs.iter().filter(|run| run.task == shortest);
    let mut lines: Vec<Line> = of_shortest
        .map(|run| {
            let responses = Log::joined(&run.logs).responses(LEAVE_OUT_S);
            let ms: Vec<f64> = responses.iter().map(|(_, ms)| *ms).collect();
            Line::new(run.name, Look::Steps, distribution(&ms))
        })
        .collect();
    let deadline_ms = period_us as f64 / 1000.0;
    let deadline = vec![(deadline_ms, 0.0), (deadline_ms, 1.0)];
    lines.push(Line::new("deadline", Look::Straight, deadline));
    let figure = Figure {
        title: "Response times of the task with the shortest period".into(),
        x: Axis::logarithmic("response time (ms)", 0.5..1000.0),
        y: Axis::linear("share of the jobs", 0.0..1.0),
        lines,
        names: Corner::LowerRight,
    };
    figure.draw(out, NAME)
}
