//! The frames of a real-time video encoder as jobs beside CPU hogs, whose I and P frames differ,
//! on a kernel in virtual time: what a program's own marks are worth to a controller that finds
//! jobs without them (LFS++, section 7.3 and Fig. 7).

use std::fs;
use std::path::Path;

use anyhow::Context;
use serde::Serialize;

use crate::machine::{Machine, OnbeatReport, ThreadFigures};
use crate::plot::{Axis, Corner, Figure, Line, Look, distribution};
use crate::results::{Table, percent};
use crate::statistics::{mean, quantile};
use crate::vm::Guest;

const NAME: &str = "adaptive-reservations";
const PERIOD_MS: f64 = 40.0;
const RATE: usize = 25;
const SECONDS: usize = 15;
/// Time to find the period.
const LEAVE_OUT: usize = 3;
const HOGS: usize = 12;

const DEFAULT: &str = "default";

/// Each way: the guest's folder, and its name.
const WAYS: [(&str, &str); 4] = [
    (DEFAULT, "default scheduler"),
    ("lfspp", "unmodified, LFS++"),
    ("onbeat", "unmodified, onbeat"),
    ("marked", "marked, onbeat"),
];

#[derive(Debug, Serialize)]
struct Figures {
    run: &'static str,
    jobs: usize,
    met_share: f64,
    response_p50_ms: f64,
    response_p95_ms: f64,
    response_p99_ms: f64,
    executed_i_ms: f64,
    executed_p_ms: f64,
    used: f64,
    reserved: Option<f64>,
    #[serde(skip)]
    responses_ms: Vec<f64>,
}

struct EncodedFrame {
    response_ms: f64,
    executed_ms: f64,
    is_key: bool,
}

pub(crate) fn run(machine: &Machine) -> anyhow::Result<()> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join(NAME);
    let demands = format!("{}:demands.csv", here.join("demands.csv").display());
    let own = std::env::current_exe().context("cannot tell where this program is")?;
    let guest = Guest::new(NAME)
        .need(demands)
        .need(own)
        .set("RUN_SECONDS", SECONDS)
        .set("HOGS", HOGS)
        .boot(machine)?;
    let figures = WAYS.iter().map(|(folder, way)| {
        let jobs = jobs(&guest.folder.join(folder).join("jobs"))?;
        let report = guest.folder.join(format!("{folder}.json"));
        let threads = match *folder {
            DEFAULT => Vec::new(),
            _ => OnbeatReport::read(&report)?,
        };
        let thread = threads.into_iter().find(|thread| thread.comm == "srtgen");
        Ok(figures(way, &jobs, thread.as_ref()))
    });
    let figures = figures.collect::<anyhow::Result<Vec<_>>>()?;
    plot(machine, &figures)?;
    machine.publish(&guest.ran(machine), NAME, &table(&figures), &figures)
}

fn jobs(log: &Path) -> anyhow::Result<Vec<EncodedFrame>> {
    let text = fs::read_to_string(log).with_context(|| format!("no {}", log.display()))?;
    let job = |line: &str| {
        let mut fields = line.split_ascii_whitespace();
        let mut ns = || fields.next()?.parse::<f64>().ok();
        let (release, ended, executed) = (ns()?, ns()?, ns()?);
        Some(EncodedFrame {
            response_ms: (ended - release) / 1e6,
            executed_ms: executed / 1e6,
            is_key: fields.next()? == "I",
        })
    };
    let jobs: Option<Vec<EncodedFrame>> = text.lines().map(job).collect();
    let mut jobs = jobs.with_context(|| format!("{} is damaged", log.display()))?;
    jobs.drain(..(LEAVE_OUT * RATE).min(jobs.len()));
    Ok(jobs)
}

fn figures(run: &'static str, jobs: &[EncodedFrame], thread: Option<&ThreadFigures>) -> Figures {
    let responses_ms: Vec<f64> = jobs.iter().map(|job| job.response_ms).collect();
    let met = responses_ms.iter().filter(|&&ms| ms <= PERIOD_MS).count();
    let mean = |is_key| {
        let of_kind = jobs.iter().filter(|job| job.is_key == is_key);
        mean(&of_kind.map(|job| job.executed_ms).collect::<Vec<_>>())
    };
    let executed: f64 = jobs.iter().map(|job| job.executed_ms).sum();
    Figures {
        run,
        jobs: jobs.len(),
        met_share: met as f64 / jobs.len().max(1) as f64,
        response_p50_ms: quantile(&responses_ms, 0.50),
        response_p95_ms: quantile(&responses_ms, 0.95),
        response_p99_ms: quantile(&responses_ms, 0.99),
        executed_i_ms: mean(true),
        executed_p_ms: mean(false),
        used: executed / (jobs.len().max(1) as f64 * PERIOD_MS),
        reserved: thread.map(|thread| thread.bandwidth_reserved),
        responses_ms,
    }
}

fn plot(machine: &Machine, figures: &[Figures]) -> anyhow::Result<()> {
    let lines = figures
        .iter()
        .map(|f| Line::new(f.run, Look::Steps, distribution(&f.responses_ms)))
        .collect();
    Figure {
        title: "Response times of an encoder with I and P frames at 25 Hz".to_owned(),
        x: Axis::linear("response time, ms (deadline: 40)", 0.0..120.0),
        y: Axis::linear("share of the frames", 0.0..1.0),
        lines,
        names: Corner::LowerRight,
    }
    .draw(machine.out(), NAME)
}

fn table(figures: &[Figures]) -> Table {
    let ms = |ms: f64| format!("{ms:.2} ms");
    Table::of(figures, |f| {
        let reserved = f.reserved.map(|share| percent(share, 1));
        [
            ("run", f.run.to_owned()),
            ("frames", f.jobs.to_string()),
            ("in time", percent(f.met_share, 2)),
            ("p50", ms(f.response_p50_ms)),
            ("p95", ms(f.response_p95_ms)),
            ("p99", ms(f.response_p99_ms)),
            ("I frame", ms(f.executed_i_ms)),
            ("P frame", ms(f.executed_p_ms)),
            ("used", percent(f.used, 1)),
            ("reserved", reserved.unwrap_or_else(|| "-".into())),
        ]
    })
}
