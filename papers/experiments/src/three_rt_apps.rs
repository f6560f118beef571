//! The three tasks of LFS++'s Table I on one CPU in virtual time: under the kernel's default
//! scheduler, under LFS++ as the paper has it, under onbeat, and under reservations set by hand,
//! from known periods and execution times.

use std::path::Path;

use anyhow::Context;
use serde::Serialize;

use crate::machine::{Machine, OnbeatReport, ThreadFigures};
use crate::plot::{Axis, Corner, Figure, Line, Look, distribution};
use crate::results::{Table, or_dash, percent};
use crate::rt_app::{Jobs, Log};
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

struct RtAppTask {
    name: &'static str,
    period_us: u64,
    run_us: u64,
    by_hand_us: u64,
}

#[derive(Debug, Serialize)]
struct Figures {
    run: &'static str,
    task: &'static str,
    period_us: u64,
    /// Of all images together.
    jobs: Jobs,
    missed_share: f64,
    missed_share_of_images: Vec<f64>,
    used: Option<f64>,
    reserved: Option<f64>,
    changes: Option<u64>,
}

/// A run's name, and the response times in ms of the shortest task's jobs.
type Responses = (&'static str, Vec<f64>);

pub(crate) fn run(machine: &Machine) -> anyhow::Result<()> {
    let booted: Vec<Ended> = (0..IMAGES)
        .map(|image| boot(machine, image))
        .collect::<anyhow::Result<_>>()?;
    let (mut figures, mut responses) = (Vec::new(), Vec::new());
    for (way, run) in WAYS {
        for (n, task) in tasks().iter().enumerate() {
            let folders = || booted.iter().map(|ended| ended.folder.join(way));
            let logs = folders().map(|folder| Log::read(&folder, task.name));
            let logs = logs.collect::<anyhow::Result<Vec<Log>>>()?;
            let seen = folders().map(|folder| seen(&folder, task));
            let seen = seen.collect::<anyhow::Result<Vec<_>>>()?;
            let log = Log::joined(&logs);
            if n == 0 {
                let of_all = log.responses(LEAVE_OUT_S);
                responses.push((run, of_all.iter().map(|(_, ms)| *ms).collect()));
            }
            let seen: Vec<ThreadFigures> = seen.into_iter().flatten().collect();
            let mean = |of: fn(&ThreadFigures) -> f64| {
                let sum: f64 = seen.iter().map(of).sum();
                (!seen.is_empty()).then(|| sum / seen.len() as f64)
            };
            let by_hand = task.by_hand_us as f64 / task.period_us as f64;
            let jobs = log.jobs(LEAVE_OUT_S);
            figures.push(Figures {
                run,
                task: task.name,
                period_us: task.period_us,
                missed_share: jobs.miss_ratio(),
                missed_share_of_images: logs
                    .iter()
                    .map(|log| log.jobs(LEAVE_OUT_S).miss_ratio())
                    .collect(),
                jobs,
                used: mean(|thread| thread.bandwidth_used),
                reserved: mean(|thread| thread.bandwidth_reserved)
                    .or((way == BY_HAND).then_some(by_hand)),
                changes: mean(|thread| thread.changes as f64).map(|changes| changes.round() as u64),
            });
        }
    }
    draw(machine.out(), responses)?;
    let ran = booted.first().context("no image")?.ran(machine);
    machine.publish(&ran, NAME, &table(&figures), &figures)
}

fn boot(machine: &Machine, image: u64) -> anyhow::Result<Ended> {
    let word = |task: &RtAppTask| {
        let RtAppTask {
            name,
            period_us,
            run_us,
            by_hand_us,
        } = task;
        format!("{name}:{period_us}:{run_us}:{by_hand_us}")
    };
    let own = std::env::current_exe().context("cannot tell where this program is")?;
    Guest::new(NAME)
        .image(image)
        .need(own)
        .set(
            "TASKS",
            tasks().iter().map(word).collect::<Vec<_>>().join(" "),
        )
        .set("RUN_SECONDS", SECONDS)
        .set("HOGS", 0)
        .set("ONBEAT", CAP)
        .boot(machine)
}

fn seen(folder: &Path, task: &RtAppTask) -> anyhow::Result<Option<ThreadFigures>> {
    let report = folder.join("report.json");
    if !report.exists() {
        return Ok(None);
    }
    let threads = OnbeatReport::read(&report)?;
    Ok(threads.into_iter().find(|t| t.comm.starts_with(task.name)))
}

fn tasks() -> Vec<RtAppTask> {
    let task = |(name, period_us, load): (&'static str, u64, f64)| {
        let run_us = period_us as f64 * load;
        RtAppTask {
            name,
            period_us,
            run_us: run_us.round() as u64,
            by_hand_us: (run_us * (1.0 + HAND_SPREAD)).round() as u64,
        }
    };
    TABLE_ONE.into_iter().map(task).collect()
}

fn table(figures: &[Figures]) -> Table {
    let share = |share| percent(share, 1);
    Table::of(figures, |f| {
        let paper = PAPER_IN_TIME
            .iter()
            .find(|(run, task, _)| (*run, *task) == (f.run, f.task));
        [
            ("run", f.run.to_owned()),
            ("task", f.task.to_owned()),
            ("period", format!("{:.3} ms", f.period_us as f64 / 1000.0)),
            ("jobs", f.jobs.jobs.to_string()),
            ("in time", in_time(f)),
            ("paper", or_dash(paper, |(_, _, share)| percent(*share, 0))),
            ("p50", format!("{:.2} ms", f.jobs.response_p50_ms)),
            ("p99", format!("{:.2} ms", f.jobs.response_p99_ms)),
            ("longest", format!("{:.2} ms", f.jobs.response_max_ms)),
            ("used", or_dash(f.used, share)),
            ("reserved", or_dash(f.reserved, share)),
            (
                "ratio",
                or_dash(f.reserved.zip(f.used), |(reserved, used)| {
                    format!("{:.2}", reserved / used.max(1e-9))
                }),
            ),
            ("changes", or_dash(f.changes, |n| n.to_string())),
        ]
    })
}

/// The share of jobs in time, with those of the worst and of the best image if they differ.
fn in_time(figures: &Figures) -> String {
    let share = |missed: f64| format!("{:.2}%", (1.0 - missed) * 100.0);
    let of_images = figures.missed_share_of_images.iter().copied();
    let (least, most) = of_images.fold((1.0_f64, 0.0_f64), |(least, most), missed| {
        (least.min(missed), most.max(missed))
    });
    let all = share(figures.missed_share);
    if share(least) == share(most) || least > most {
        all
    } else {
        format!("{all} ({} to {})", share(most), share(least))
    }
}

/// Fig. 6: how the shortest task's response times are distributed.
fn draw(out: &Path, responses: Vec<Responses>) -> anyhow::Result<()> {
    let mut lines: Vec<Line> = responses
        .into_iter()
        .map(|(run, ms)| Line::new(run, Look::Steps, distribution(&ms)))
        .collect();
    let deadline_ms = TABLE_ONE[0].1 as f64 / 1000.0;
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
