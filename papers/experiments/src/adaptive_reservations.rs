//! The frames of a real-time video encoder as jobs beside CPU hogs, whose I and P frames differ,
//! on a kernel in virtual time: what a program's own marks are worth to a controller that finds
//! jobs without them (LFS++, section 7.3 and Fig. 7).

use std::path::Path;

use anyhow::Context;

use crate::log::numbers;
use crate::machine::{Machine, OnbeatReport};
use crate::plot::{Axis, Corner, Figure, Line, Look, distribution};
use crate::results::{Table, or_dash, percent};
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

struct EncoderRun {
    way: &'static str,
    responses_ms: Vec<f64>,
    /// Of the I frames and of the P frames.
    executed_ms: [Vec<f64>; 2],
    reserved: Option<f64>,
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
    let runs = WAYS.map(|(folder, way)| read(&guest.folder, folder, way));
    let runs = runs.into_iter().collect::<anyhow::Result<Vec<_>>>()?;
    let line = |run: &EncoderRun| Line::new(run.way, Look::Steps, distribution(&run.responses_ms));
    let figure = Figure {
        title: "Response times of an encoder with I and P frames at 25 Hz".to_owned(),
        x: Axis::linear("response time, ms (deadline: 40)", 0.0..120.0),
        y: Axis::linear("share of the frames", 0.0..1.0),
        lines: runs.iter().map(line).collect(),
        names: Corner::LowerRight,
    };
    figure.draw(machine.out(), NAME)?;
    machine.publish(&guest.ran(machine), NAME, &table(&runs));
    Ok(())
}

fn read(results: &Path, folder: &str, way: &'static str) -> anyhow::Result<EncoderRun> {
    let threads = match folder {
        DEFAULT => Vec::new(),
        _ => OnbeatReport::read(&results.join(format!("{folder}.json")))?,
    };
    let thread = threads.iter().find(|thread| thread.comm == "srtgen");
    let mut run = EncoderRun {
        way,
        responses_ms: Vec::new(),
        executed_ms: [Vec::new(), Vec::new()],
        reserved: thread.map(|thread| thread.bandwidth_reserved),
    };
    let jobs = numbers(&results.join(folder).join("log.csv"))?;
    let counted = jobs.into_iter().skip(LEAVE_OUT * RATE);
    for [number, release, _, ended, _, used, _, _] in counted {
        run.responses_ms.push((ended - release) / 1e6);
        run.executed_ms[number as usize % 2].push(used / 1e6);
    }
    Ok(run)
}

fn table(runs: &[EncoderRun]) -> Table {
    let ms = |ms: f64| format!("{ms:.2} ms");
    Table::of(runs, |run| {
        let [i, p] = &run.executed_ms;
        let responses = &run.responses_ms;
        let frames = responses.len().max(1) as f64;
        let met = responses.iter().filter(|&&ms| ms <= PERIOD_MS).count();
        let used: f64 = i.iter().chain(p).sum();
        [
            ("run", run.way.to_owned()),
            ("frames", responses.len().to_string()),
            ("in time", percent(met as f64 / frames, 2)),
            ("p50", ms(quantile(responses, 0.50))),
            ("p95", ms(quantile(responses, 0.95))),
            ("p99", ms(quantile(responses, 0.99))),
            ("I frame", ms(mean(i))),
            ("P frame", ms(mean(p))),
            ("used", percent(used / (frames * PERIOD_MS), 1)),
            ("reserved", or_dash(run.reserved, |share| percent(share, 1))),
        ]
    })
}
