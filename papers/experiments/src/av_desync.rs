//! A film beside CPU hogs (LFS++, section 7.1, Fig. 5): how far sound and picture come apart on an
//! idle machine, on a busy one, and on a busy one with onbeat.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::machine::{Display, Hogs, Machine, Onbeat};
use crate::media::{Played, film, play};
use crate::plot::{Axis, Corner, Figure, Line, Look};
use crate::results::{Ran, Table, percent};

const NAME: &str = "av-desync";
/// For how long the film is watched in each run.
const SECONDS: u64 = 30;
const HOGS_PER_CPU: usize = 4;

/// One way of playing the film.
#[derive(Clone, Copy, Debug, PartialEq)]
enum DesyncWay {
    Idle,
    Busy,
    /// 24 ms in every 40 ms, for the player alone.
    HandSet,
    Onbeat,
}

impl DesyncWay {
    const ALL: [Self; 4] = [Self::Idle, Self::Busy, Self::HandSet, Self::Onbeat];

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

type DesyncRun = (&'static str, Played);

pub(crate) fn run(machine: &Machine) -> anyhow::Result<()> {
    machine.need_root()?;
    let film = film(machine, SECONDS + 5)?;
    let mut runs = Vec::new();
    for (n, way) in (1..).zip(DesyncWay::ALL) {
        let of = DesyncWay::ALL.len();
        println!("[{n}/{of}] {}: {SECONDS} s of film ...", way.name());
        let played = play_in(machine, &film, way)?;
        println!(
            "      {} frames shown, A/V desynchronisation p95 {:.3} s, at most {:.3} s",
            played.frames.len(),
            played.desync(0.95),
            played.desync(1.0)
        );
        runs.push((way.name(), played));
    }
    if let Err(error) = plot(&runs).draw(machine.out(), NAME) {
        println!("no plot: {error:#}");
    }
    machine.publish(&Ran::live(machine), NAME, &table(&runs));
    Ok(())
}

fn play_in(machine: &Machine, film: &Path, way: DesyncWay) -> anyhow::Result<Played> {
    let display = Display::start(machine)?;
    let hogs = match way {
        DesyncWay::Idle => None,
        _ => Some(Hogs::start(machine, HOGS_PER_CPU * Machine::cpus())?),
    };
    let onbeat = Onbeat::new(machine, way.file())?;
    let command = match way {
        DesyncWay::Idle | DesyncWay::Busy => Command::new("mplayer"),
        DesyncWay::HandSet => by_hand(),
        DesyncWay::Onbeat => onbeat.run(["--also", &display.pid().to_string()], "mplayer"),
    };
    let played = play(
        machine,
        command,
        film,
        display.name(),
        Duration::from_secs(SECONDS),
        &machine.file(&format!("{}.stderr", way.file())),
    )?;
    drop(hogs);
    Ok(played)
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
fn plot(runs: &[DesyncRun]) -> Figure {
    let all = || runs.iter().flat_map(|(_, played)| &played.frames);
    let low = all().map(|frame| frame.desync_s).fold(-0.1, f64::min);
    let high = all().map(|frame| frame.desync_s).fold(0.5, f64::max);
    let line = |(run, played): &DesyncRun| {
        let frames = played.frames.iter().map(|f| (f.at_s, f.desync_s));
        Line::new(run, Look::Straight, frames.collect())
    };
    Figure {
        title: "A/V desynchronisation of mplayer".to_owned(),
        x: Axis::linear("playing time (s)", 0.0..SECONDS as f64),
        y: Axis::linear("A/V desynchronisation (s)", low * 1.05..high * 1.05),
        lines: runs.iter().map(line).collect(),
        names: Corner::UpperLeft,
    }
}

fn table(runs: &[DesyncRun]) -> Table {
    let idle_frames = runs.first().map_or(1, |(_, idle)| idle.frames.len().max(1));
    Table::of(runs, |(run, played)| {
        let frames = played.frames.len();
        let desync = |p| format!("{:.3} s", played.desync(p));
        [
            ("run", (*run).to_owned()),
            ("A/V desync p50", desync(0.5)),
            ("p95", desync(0.95)),
            ("max", desync(1.0)),
            ("frames shown", frames.to_string()),
            ("of idle", percent(frames as f64 / idle_frames as f64, 0)),
        ]
    })
}
