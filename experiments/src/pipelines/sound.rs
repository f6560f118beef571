//! Two players of sound on one PipeWire.

use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

use anyhow::{Context, bail};
use serde::Serialize;

use super::pipewire::{Cycles, Pipewire};
use super::{Args, PipelineWay, served};
use crate::machine::{Hogs, Machine, OnbeatReport, Program, ThreadFigures, binary};
use crate::results::Table;

const PLAYERS: usize = 2;

#[derive(Debug, Serialize)]
pub(super) struct SoundRun {
    way: PipelineWay,
    #[serde(flatten)]
    cycles: Cycles,
    threads: Vec<ThreadFigures>,
}

pub(super) fn run(
    machine: &Machine,
    args: &Args,
    runs: &mut Vec<SoundRun>,
    table: &mut Table,
) -> anyhow::Result<()> {
    for way in PipelineWay::ALL {
        println!("sound, {}: {} s ...", way.name(), args.sound_seconds);
        let run = play_in(machine, args, way)?;
        let Cycles {
            all,
            not_finished,
            late,
        } = run.cycles;
        println!("      {all} cycles, {not_finished} not finished in time, {late} begun late");
        let served = served(&run.threads);
        for (figure, value) in [("xruns", not_finished), ("cycles begun late", late)] {
            table.row([
                "sound".to_owned(),
                way.name().to_owned(),
                figure.to_owned(),
                format!("{value} of {all}"),
                served.clone(),
            ]);
        }
        runs.push(run);
    }
    Ok(())
}

fn play_in(machine: &Machine, args: &Args, way: PipelineWay) -> anyhow::Result<SoundRun> {
    let sound = machine.file("pipelines.wav");
    // Some more than is counted: everything has to start first.
    let source = format!(
        "sine=frequency=440:duration={}:sample_rate=48000",
        args.sound_seconds + 60
    );
    let made = Command::new("ffmpeg")
        .args([
            "-v", "error", "-y", "-f", "lavfi", "-i", &source, "-ac", "2",
        ])
        .arg(&sound)
        .stdin(Stdio::null())
        .status()
        .context("cannot start ffmpeg: is it installed?")?;
    if !made.success() {
        bail!("ffmpeg cannot make {}", sound.display());
    }
    let pipewire = Pipewire::start(machine)?;
    let mut players = Vec::new();
    for number in 0..PLAYERS {
        players.push(pipewire.play(machine, number, &sound)?);
    }
    machine.wait(Duration::from_secs(2))?;
    let hogs = Hogs::start(machine, args.hogs * Machine::cpus())?;
    let report = machine.file(&format!("pipelines.sound.{}.report.json", way.file()));
    let onbeat = match way.option() {
        None => None,
        Some(option) => {
            let mut command = Command::new(binary()?);
            command
                .args(["attach", "--quiet", option, "--report"])
                .arg(&report)
                .arg("--log")
                .arg(machine.file(&format!("pipelines.sound.{}.log.jsonl", way.file())))
                .args(players.iter().map(|player| player.pid().to_string()));
            let messages = machine.file(&format!("pipelines.sound.{}.stderr", way.file()));
            Some(Program::start(command, &messages)?)
        }
    };
    let profile = pipewire.profile(machine)?;
    let from = SystemTime::now();
    machine.wait(Duration::from_secs(args.sound_seconds))?;
    let to = SystemTime::now();
    drop(hogs);
    let cycles = Cycles::of(&profile.end(machine, from, to)?);
    if players.iter_mut().any(|player| player.ended().is_some()) {
        bail!("a player has ended: its messages are in pipelines.pw-cat.N.stderr");
    }
    let threads = match onbeat {
        None => Vec::new(),
        Some(mut onbeat) => {
            onbeat.end();
            OnbeatReport::read(&report)?
        }
    };
    Ok(SoundRun {
        way,
        cycles,
        threads,
    })
}
