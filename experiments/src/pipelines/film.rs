//! mplayer on an X server that draws into memory, as in `av-desync`.

use std::process::Command;
use std::time::Duration;

use serde::Serialize;

use super::{Args, PipelineWay, served};
use crate::machine::{Display, Hogs, Machine, Onbeat, ThreadFigures};
use crate::media::{Clip, Played, play};
use crate::results::Table;

/// The time before is the start, in which the path is found.
const STARTED: Duration = Duration::from_secs(3);

#[derive(Debug, Serialize)]
pub(super) struct FilmRun {
    way: PipelineWay,
    frames_shown: usize,
    desync_p50_s: f64,
    desync_p95_s: f64,
    desync_max_s: f64,
    desync_p95_once_started_s: f64,
    played: Played,
    threads: Vec<ThreadFigures>,
}

pub(super) fn run(
    machine: &Machine,
    args: &Args,
    runs: &mut Vec<FilmRun>,
    table: &mut Table,
) -> anyhow::Result<()> {
    let clip = Clip::of(machine, args.film_seconds + 5)?;
    for way in PipelineWay::ALL {
        println!("film, {}: {} s ...", way.name(), args.film_seconds);
        let run = play_in(machine, args, &clip, way)?;
        println!(
            "      {} frames shown, A/V desynchronisation p95 {:.3} s",
            run.frames_shown, run.desync_p95_s
        );
        let served = served(&run.threads);
        for (figure, value) in [
            ("A/V desynchronisation p95", run.desync_p95_s),
            ("p95 from the 4th second on", run.desync_p95_once_started_s),
            ("at most", run.desync_max_s),
        ] {
            table.row([
                "film".to_owned(),
                way.name().to_owned(),
                figure.to_owned(),
                format!("{value:.3} s"),
                served.clone(),
            ]);
        }
        runs.push(run);
    }
    Ok(())
}

fn play_in(
    machine: &Machine,
    args: &Args,
    clip: &Clip,
    way: PipelineWay,
) -> anyhow::Result<FilmRun> {
    let name = format!("pipelines.film.{}", way.file());
    let display = Display::start(machine)?;
    let hogs = Hogs::start(machine, args.hogs * Machine::cpus())?;
    let onbeat = Onbeat::new(machine, &name)?;
    let command = match way.option() {
        None => Command::new("mplayer"),
        Some(option) => onbeat.run([option], "mplayer"),
    };
    let played = play(
        machine,
        command,
        clip.path(),
        display.name(),
        Duration::from_secs(args.film_seconds),
        &machine.file(&format!("{name}.stderr")),
    )?;
    drop(hogs);
    Ok(FilmRun {
        way,
        frames_shown: played.frames.len(),
        desync_p50_s: played.desync(0.5),
        desync_p95_s: played.desync(0.95),
        desync_max_s: played.desync(1.0),
        desync_p95_once_started_s: played.since(STARTED).desync(0.95),
        played,
        threads: match way.option() {
            None => Vec::new(),
            Some(_) => onbeat.threads()?,
        },
    })
}
