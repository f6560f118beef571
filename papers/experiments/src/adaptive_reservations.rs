//! A real-time video encoder beside CPU hogs, whose I and P frames differ: what a program's own
//! marks are worth to a controller that finds jobs without them (LFS++, section 7.3 and Fig. 7).

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, bail};
use serde::Serialize;
use serde_json::json;

use crate::lfspp;
use crate::machine::{Hogs, Machine, Onbeat, OnbeatReport, compile};
use crate::plot::{Axis, Corner, Figure, Line, Look, distribution};
use crate::results::{Ran, Table, mean, percent, quantile};
use crate::vm::Guest;

const NAME: &str = "adaptive-reservations";
const PERIOD_MS: f64 = 40.0;
const RATE: u64 = 25;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// For how long the encoder runs in each way
    #[arg(long, value_name = "SECONDS", default_value_t = 30,
          value_parser = clap::value_parser!(u64).range(5..=3600))]
    seconds: u64,
    /// The begin that is left out of all figures: time to find the period
    #[arg(long, value_name = "SECONDS", default_value_t = 3)]
    leave_out: u64,
    /// CPU hogs in all
    #[arg(long, value_name = "N", default_value_t = 4)]
    hogs: usize,
    /// In virtual time, with jobs that take what the encoder's frames took
    #[arg(long)]
    vm: bool,
}

struct EncoderWay {
    name: &'static str,
    folder: &'static str,
    marks: bool,
}

const fn way(name: &'static str, folder: &'static str, marks: bool) -> EncoderWay {
    EncoderWay {
        name,
        folder,
        marks,
    }
}

const DEFAULT: &str = "default";
const LFSPP: &str = "lfspp";

const WAYS: [EncoderWay; 4] = [
    way("default scheduler", DEFAULT, false),
    way("unmodified, LFS++", LFSPP, false),
    way("unmodified, onbeat", "onbeat", false),
    way("marked, onbeat", "marked", true),
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
    marks: Option<u64>,
    #[serde(skip)]
    responses_ms: Vec<f64>,
}

struct EncodedFrame {
    response_ms: f64,
    executed_ms: f64,
    is_key: bool,
}

pub(crate) fn run(machine: &Machine, args: &Args) -> anyhow::Result<()> {
    let (name, (ran, figures)) = match args.vm {
        true => ("adaptive-reservations-vm", in_guest(machine, args)?),
        false => (NAME, live(machine, args)?),
    };
    plot(machine, name, &figures)?;
    let paper = json!({
        "figure": "LFS++, Fig. 7 (640 x 480 at 25 Hz, MPEG-2, I and P frames alternating)",
        "met_share": { "LFS++": 0.85, "adaptive reservations": "more than 0.90" },
        "within_60_ms": { "LFS++": 0.92 },
    });
    machine.publish(&ran, name, &table(&figures), &figures, paper)
}

/// Runs the encoder's frames as jobs on a kernel in virtual time: libavcodec does not fit there.
fn in_guest(machine: &Machine, args: &Args) -> anyhow::Result<(Ran, Vec<Figures>)> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join(NAME);
    let demands = format!("{}:demands.csv", here.join("demands.csv").display());
    let own = std::env::current_exe().context("cannot tell where this program is")?;
    let guest = Guest::new(NAME)
        .need(demands)
        .need(own)
        .set("RUN_SECONDS", args.seconds)
        .set("HOGS", args.hogs)
        .boot(machine)?;
    let figures = WAYS.iter().map(|way| {
        let jobs = jobs(&guest.folder.join(way.folder).join("jobs"), args.leave_out)?;
        let report = guest.folder.join(format!("{}.json", way.folder));
        let threads = match way.folder {
            DEFAULT => Vec::new(),
            _ => OnbeatReport::read(&report)?,
        };
        let thread = threads.into_iter().find(|thread| thread.comm == "srtgen");
        Ok(figures(way, &jobs, thread.as_ref()))
    });
    let figures = figures.collect::<anyhow::Result<_>>()?;
    Ok((guest.ran(), figures))
}

fn live(machine: &Machine, args: &Args) -> anyhow::Result<(Ran, Vec<Figures>)> {
    machine.need_root()?;
    let facts = machine.facts();
    let folder = tempfile::tempdir().context("no temporary folder")?;
    let encoder = compile_encoder(folder.path())?;
    let hogs = Hogs::start(machine, args.hogs)?;
    let mut figures = Vec::new();
    for (n, way) in (1..).zip(&WAYS) {
        let (of, seconds) = (WAYS.len(), args.seconds);
        println!("[{n}/{of}] {}: {seconds} s ...", way.name);
        figures.push(run_in(machine, args, way, &encoder)?);
    }
    drop(hogs);
    Ok((Ran::Live(facts), figures))
}

fn compile_encoder(folder: &Path) -> anyhow::Result<PathBuf> {
    let libraries = Command::new("pkg-config")
        .args(["--cflags", "--libs", "libavcodec", "libavutil"])
        .output()
        .context("cannot start pkg-config")?;
    let libraries = String::from_utf8_lossy(&libraries.stdout).into_owned();
    let include = concat!("-I", env!("CARGO_MANIFEST_DIR"), "/../../libonbeat/include");
    let options = libraries.split_ascii_whitespace().chain([include]);
    compile("adaptive-reservations/encoder.c", options, folder)
}

fn run_in(
    machine: &Machine,
    args: &Args,
    way: &EncoderWay,
    encoder: &Path,
) -> anyhow::Result<Figures> {
    let run = way.name.replace([' ', ','], "-");
    let onbeat = Onbeat::new(machine, &format!("{NAME}.{run}"))?;
    let of_lfspp = machine.file(&format!("{NAME}.lfspp.json"));
    let mut command = match way.folder {
        DEFAULT => Command::new(encoder),
        LFSPP => {
            let mut command = lfspp::command(&of_lfspp)?;
            command.arg(encoder);
            command
        }
        _ => onbeat.run([""; 0], encoder),
    };
    let log = machine.file(&format!("{NAME}.{run}.jobs"));
    command
        .arg((args.seconds * RATE).to_string())
        .arg(&log)
        .stdout(Stdio::null());
    if way.marks {
        command.arg("marks");
    }
    let messages = machine.file(&format!("{NAME}.stderr"));
    // Under the default scheduler the last frames may come much later.
    let patience = Duration::from_secs(args.seconds * 10 + 30);
    if !machine.run(command, &messages, patience)? {
        bail!("the encoder failed: see {}", messages.display());
    }
    let jobs = jobs(&log, args.leave_out)?;
    let threads = match way.folder {
        DEFAULT => Vec::new(),
        LFSPP => OnbeatReport::read(&of_lfspp)?,
        _ => onbeat.threads()?,
    };
    let thread = threads.into_iter().find(|thread| thread.comm == "encoder");
    let figures = figures(way, &jobs, thread.as_ref());
    println!(
        "      {:.2}% of {} in time",
        figures.met_share * 100.0,
        figures.jobs
    );
    Ok(figures)
}

fn jobs(log: &Path, leave_out: u64) -> anyhow::Result<Vec<EncodedFrame>> {
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
    let begin = usize::try_from(leave_out * RATE)?.min(jobs.len());
    jobs.drain(..begin);
    Ok(jobs)
}

fn figures(
    way: &EncoderWay,
    jobs: &[EncodedFrame],
    thread: Option<&crate::machine::ThreadFigures>,
) -> Figures {
    let responses_ms: Vec<f64> = jobs.iter().map(|job| job.response_ms).collect();
    let met = responses_ms.iter().filter(|&&ms| ms <= PERIOD_MS).count();
    let mean = |is_key| {
        let of_kind = jobs.iter().filter(|job| job.is_key == is_key);
        mean(&of_kind.map(|job| job.executed_ms).collect::<Vec<_>>())
    };
    let executed: f64 = jobs.iter().map(|job| job.executed_ms).sum();
    Figures {
        run: way.name,
        jobs: jobs.len(),
        met_share: met as f64 / jobs.len().max(1) as f64,
        response_p50_ms: quantile(&responses_ms, 0.50),
        response_p95_ms: quantile(&responses_ms, 0.95),
        response_p99_ms: quantile(&responses_ms, 0.99),
        executed_i_ms: mean(true),
        executed_p_ms: mean(false),
        used: executed / (jobs.len().max(1) as f64 * PERIOD_MS),
        reserved: thread.map(|thread| thread.bandwidth_reserved),
        marks: thread.map(|thread| thread.marks),
        responses_ms,
    }
}

fn plot(machine: &Machine, name: &str, figures: &[Figures]) -> anyhow::Result<()> {
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
    .draw(machine.out(), name)
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
