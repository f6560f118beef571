//! A film beside CPU hogs (LFS++, section 7.1, Fig. 5): how far sound and picture come apart on an
//! idle machine, on a busy one, and on a busy one with onbeat.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde::Serialize;
use serde_json::json;

use crate::machine::{Display, Hogs, Machine, Onbeat, ThreadFigures};
use crate::media::{Played, film, play};
use crate::plot::{Axis, Corner, Figure, Line, Look};
use crate::results::{Ran, Table, or_dash, percent};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// For how long the film is watched in each run
    #[arg(long, value_name = "SECONDS", default_value_t = 30,
          value_parser = clap::value_parser!(u64).range(5..=600))]
    seconds: u64,
    /// CPU hogs for each CPU
    #[arg(long, value_name = "N", default_value_t = 4)]
    hogs: usize,
    /// A further run under a reservation set by hand: 24 ms in every 40 ms, for the player alone
    #[arg(long)]
    hand_set: bool,
    /// Only this run; may be given several times
    #[arg(long, value_enum, value_name = "RUN")]
    only: Vec<DesyncWay>,
    /// A further option for `onbeat run`, as in --option=--hard; may be given several
    /// times
    #[arg(long = "option", value_name = "OPTION", allow_hyphen_values = true)]
    options: Vec<String>,
}

/// One way of playing the film.
#[derive(Clone, Copy, Debug, PartialEq, clap::ValueEnum)]
enum DesyncWay {
    /// Without hogs
    Idle,
    /// With hogs
    Busy,
    /// With hogs and a reservation set by hand
    HandSet,
    /// With hogs and onbeat
    Onbeat,
}

impl DesyncWay {
    const fn name(self) -> &'static str {
        match self {
            Self::Idle => "idle machine",
            Self::Busy => "hogs",
            Self::HandSet => "hogs, 24/40 ms by hand",
            Self::Onbeat => "hogs, with onbeat",
        }
    }

    const fn file(self) -> &'static str {
        match self {
            Self::Idle => "av-desync.idle",
            Self::Busy => "av-desync.busy",
            Self::HandSet => "av-desync.hand-set",
            Self::Onbeat => "av-desync.onbeat",
        }
    }
}

#[derive(Debug, Serialize)]
pub(crate) struct DesyncRun {
    run: &'static str,
    frames_shown: usize,
    desync_p50_s: f64,
    desync_p95_s: f64,
    desync_max_s: f64,
    played: Played,
    threads: Vec<ThreadFigures>,
}

pub(crate) fn run(machine: &Machine, args: &Args) -> anyhow::Result<()> {
    machine.need_root()?;
    let facts = machine.facts();
    let film = film(machine, args.seconds + 5)?;
    let ways = ways(args);
    let mut runs = Vec::new();
    for (n, way) in (1..).zip(&ways) {
        println!(
            "[{n}/{}] {}: {} s of film ...",
            ways.len(),
            way.name(),
            args.seconds
        );
        let run = play_in(machine, args, &film, *way)?;
        println!(
            "      {} frames shown, A/V desynchronisation p95 {:.3} s, at most {:.3} s",
            run.frames_shown, run.desync_p95_s, run.desync_max_s
        );
        runs.push(run);
    }
    let idle_frames = runs
        .iter()
        .find(|run| run.run == DesyncWay::Idle.name())
        .map(|run| run.frames_shown);
    if let Err(error) = plot(&runs, args.seconds as f64).draw(machine.out(), "av-desync") {
        println!("no plot: {error:#}");
    }
    let paper = json!({
        "figure": "LFS++, Fig. 5 (Core 2 Duo P9600, mplayer, start-up of a Java IDE as load)",
        "desync_max_s": { "no load": "constant after the transient", "Linux": 1.9, "LFS++": 0.2 },
        "usually_below_s": { "LFS++": 0.1 },
    });
    machine.publish(
        &Ran::Live(facts),
        "av-desync",
        &table(&runs, idle_frames),
        &runs,
        paper,
    )
}

fn ways(args: &Args) -> Vec<DesyncWay> {
    if !args.only.is_empty() {
        return args.only.clone();
    }
    let mut ways = vec![
        DesyncWay::Idle,
        DesyncWay::Busy,
        DesyncWay::HandSet,
        DesyncWay::Onbeat,
    ];
    ways.retain(|way| *way != DesyncWay::HandSet || args.hand_set);
    ways
}

fn play_in(
    machine: &Machine,
    args: &Args,
    film: &Path,
    way: DesyncWay,
) -> anyhow::Result<DesyncRun> {
    let display = Display::start(machine)?;
    let hogs = match way {
        DesyncWay::Idle => None,
        _ => Some(Hogs::start(machine, args.hogs * Machine::cpus())?),
    };
    let onbeat = Onbeat::new(machine, way.file())?;
    let command = match way {
        DesyncWay::Idle | DesyncWay::Busy => Command::new("mplayer"),
        DesyncWay::HandSet => by_hand(),
        DesyncWay::Onbeat => {
            let mut options = args.options.clone();
            options.extend(["--also".to_owned(), display.pid().to_string()]);
            onbeat.run(options, "mplayer")
        }
    };
    let played = play(
        machine,
        command,
        film,
        display.name(),
        Duration::from_secs(args.seconds),
        &machine.file(&format!("{}.stderr", way.file())),
    )?;
    drop(hogs);
    Ok(DesyncRun {
        run: way.name(),
        frames_shown: played.frames.len(),
        desync_p50_s: played.desync(0.5),
        desync_p95_s: played.desync(0.95),
        desync_max_s: played.desync(1.0),
        played,
        threads: match way {
            DesyncWay::Onbeat => onbeat.threads()?,
            _ => Vec::new(),
        },
    })
}

/// As an administrator who knows the player would (util-linux's chrt).
fn by_hand() -> Command {
    let mut command = Command::new("chrt");
    command
        .args(["--reset-on-fork", "--deadline"])
        .args(["--sched-runtime", "24000000"])
        .args(["--sched-deadline", "40000000"])
        .args(["--sched-period", "40000000"])
        .args(["0", "mplayer"]);
    command
}

/// Desynchronisation over playing time, one line a run, as in LFS++'s Fig. 5.
fn plot(runs: &[DesyncRun], seconds: f64) -> Figure {
    let all = || runs.iter().flat_map(|run| &run.played.frames);
    let low = all().map(|frame| frame.desync_s).fold(-0.1, f64::min);
    let high = all().map(|frame| frame.desync_s).fold(0.5, f64::max);
    let line = |run: &DesyncRun| {
        let frames = run.played.frames.iter().map(|f| (f.at_s, f.desync_s));
        Line::new(run.run, Look::Straight, frames.collect())
    };
    Figure {
        title: "A/V desynchronisation of mplayer".to_owned(),
        x: Axis::linear("playing time (s)", 0.0..seconds),
        y: Axis::linear("A/V desynchronisation (s)", low * 1.05..high * 1.05),
        lines: runs.iter().map(line).collect(),
        names: Corner::UpperLeft,
    }
}

fn table(runs: &[DesyncRun], idle_frames: Option<usize>) -> Table {
    Table::of(runs, |run| {
        let share = or_dash(idle_frames, |idle| {
            let share = run.frames_shown as f64 / idle.max(1) as f64;
            percent(share, 0)
        });
        [
            ("run", run.run.to_owned()),
            ("A/V desync p50", format!("{:.3} s", run.desync_p50_s)),
            ("p95", format!("{:.3} s", run.desync_p95_s)),
            ("max", format!("{:.3} s", run.desync_max_s)),
            ("frames shown", run.frames_shown.to_string()),
            ("of idle", share),
        ]
    })
}
