//! Section 8 of the paper on timing exceptions: a player that drops frames by the usual heuristic
//! or by deadline exceptions, beside two rt-apps, all under each of four policies; Tables 3 and 4.

mod film;
mod paper;
mod playing;
mod shown;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::bail;

use crate::machine::Machine;
use crate::plot::{Axis, Corner, Figure, Line, Look, distribution};
use crate::results::{Table, or_dash, percent};
use crate::statistics::Spread;
use crate::vm::{Ended, Guest};
use paper::{PAPER, Paper};
use playing::{Playing, Slack};

const NAME: &str = "player-deadlines";
const SLACK: &str = "player-deadlines-slack";

const PLAYER: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../libonbeat/examples/player"
);

/// How often the film is played in each way; the paper: 100.
const RUNS: u32 = 20;
/// The rt-apps' begin that is left out of their slack.
const LEAVE_OUT_S: f64 = 1.0;

struct PlayingWay {
    paper: Paper,
    playings: Vec<Playing>,
}

pub(crate) fn run(machine: &Machine) -> anyhow::Result<()> {
    let film = film::film(machine)?;
    let player = build_player(machine)?;
    let mut in_guest = film.as_os_str().to_owned();
    in_guest.push(":film.mkv");
    let guest = Guest::new(NAME)
        .set("RUNS", RUNS)
        .set("SECONDS_OF_FILM", film::SECONDS)
        .need(player)
        .need(in_guest)
        .boot(machine)?;
    let ways = ways(machine, &guest, &film)?;
    draw(machine, &ways)?;
    let ran = guest.ran(machine);
    machine.publish(&ran, SLACK, &slack_table(&ways));
    machine.publish(&ran, NAME, &table(&ways));
    Ok(())
}

fn build_player(machine: &Machine) -> anyhow::Result<PathBuf> {
    let mut command = Command::new("make");
    command
        .args(["--no-print-directory", "-C", PLAYER])
        .stdout(Stdio::null());
    let messages = machine.file("player-deadlines.stderr");
    if !machine.run(command, &messages, Duration::from_secs(600))? {
        bail!(
            "the player cannot be built: {} says why; scripts/setup.sh experiments installs what it needs",
            messages.display()
        );
    }
    Ok(Path::new(PLAYER).join("build/player/player"))
}

fn ways(machine: &Machine, guest: &Ended, film: &Path) -> anyhow::Result<Vec<PlayingWay>> {
    let mut ways = Vec::new();
    for paper in PAPER {
        let Paper { policy, rule, .. } = paper;
        let playing = |run| {
            let folder = guest.folder.join(format!("{run}-{policy}-{rule}"));
            Playing::read(&folder, LEAVE_OUT_S)
        };
        let playings = (1..=RUNS).map(playing).collect::<anyhow::Result<_>>()?;
        ways.push(PlayingWay { paper, playings });
    }
    let playings = || ways.iter().flat_map(|way| &way.playings);
    let shown: Vec<&[bool]> = playings().map(|playing| &*playing.shown).collect();
    let errors = shown::errors(machine, film, &shown)?;
    let playings = ways.iter_mut().flat_map(|way| way.playings.iter_mut());
    for (playing, error) in playings.zip(errors) {
        playing.rmse = error;
    }
    Ok(ways)
}

impl PlayingWay {
    fn spread(&self, of: fn(&Playing) -> f64) -> Spread {
        Spread::of_all(&self.playings.iter().map(of).collect::<Vec<f64>>())
    }

    fn name(&self) -> String {
        format!("{}, {}", self.paper.policy, self.paper.rule)
    }

    fn mean(&self, of: fn(&Playing) -> f64) -> f64 {
        self.spread(of).mean
    }
}

fn table(ways: &[PlayingWay]) -> Table {
    Table::of(ways, |way| {
        let within = way.mean(|playing| playing.delay_deviation_ms);
        [
            ("policy, rule", way.name()),
            (
                "A/V delay (ms)",
                way.spread(|playing| playing.delay_mean_ms).to_string(),
            ),
            ("within a run", format!("± {within:.1}")),
            ("paper", way.paper.delay_ms.to_string()),
            (
                "dropped",
                way.spread(|playing| playing.dropped as f64).to_string(),
            ),
            ("paper", way.paper.dropped.to_string()),
            ("RMSE", format!("{:.0}", way.spread(|playing| playing.rmse))),
            ("paper", format!("{:.0}", way.paper.rmse)),
        ]
    })
}

/// The misses of the rt-apps, and how promptly a frame was given up.
fn slack_table(ways: &[PlayingWay]) -> Table {
    Table::of(ways, |way| {
        let late = |of: fn(&Playing) -> &Slack| {
            let slacks = || way.playings.iter().map(of);
            let (late, jobs): (usize, usize) = (
                slacks().map(|slack| slack.late).sum(),
                slacks().map(|slack| slack.jobs).sum(),
            );
            percent(late as f64 / jobs as f64, 1)
        };
        let mean = |of| format!("{:.1}", way.mean(of));
        let least = |of: fn(&Playing) -> f64| {
            let least = way.playings.iter().map(of).fold(f64::INFINITY, f64::min);
            format!("{least:.1}")
        };
        let overrun = way.playings.iter().filter_map(|p| p.overrun_p95_ms);
        let overrun = overrun.reduce(f64::max);
        [
            ("policy, rule", way.name()),
            ("3/8 ms: late", late(|p| &p.first)),
            ("slack min", least(|p| p.first.min_ms)),
            ("p5", mean(|p| p.first.p5_ms)),
            ("p25", mean(|p| p.first.p25_ms)),
            ("mean (ms)", mean(|p| p.first.mean_ms)),
            ("20/200 ms: late", late(|p| &p.second)),
            ("slack min", least(|p| p.second.min_ms)),
            ("mean (ms)", mean(|p| p.second.mean_ms)),
            (
                "given up late by",
                or_dash(overrun, |ms| format!("{ms:.1} ms")),
            ),
        ]
    })
}

/// Figures 7(d) and 8(d) in one, and the distribution behind 8(e) to 8(h).
fn draw(machine: &Machine, ways: &[PlayingWay]) -> anyhow::Result<()> {
    let of = |playing: &Playing| (playing.dropped as f64, playing.delay_mean_ms);
    let all: Vec<(f64, f64)> = ways
        .iter()
        .flat_map(|w| w.playings.iter().map(of))
        .collect();
    let most = all
        .iter()
        .fold(10.0, |most: f64, (dropped, _)| most.max(*dropped));
    let delay = all
        .iter()
        .fold(20.0, |most: f64, (_, delay)| most.max(*delay));
    let playings = Figure {
        title: "Each playing: frames dropped, and how far the picture lagged".into(),
        x: Axis::linear("frames dropped", 0.0..most * 1.05),
        y: Axis::linear("mean A/V delay (ms)", -10.0..delay * 1.1),
        lines: ways
            .iter()
            .map(|way| {
                let points = way.playings.iter().map(of).collect();
                Line::new(&way.name(), Look::Points, points)
            })
            .collect(),
        names: Corner::UpperRight,
    };
    playings.draw(machine.out(), NAME)?;
    let lines = ways
        .iter()
        .filter(|way| way.paper.rule == "deadline")
        .map(|way| {
            let slacks: Vec<f64> = way
                .playings
                .iter()
                .flat_map(|p| p.first.all_ms.clone())
                .collect();
            Line::new(way.paper.policy, Look::Steps, distribution(&slacks))
        });
    let slack = Figure {
        title: "Slack of the 3/8 ms rt-app beside the player with deadline exceptions".into(),
        x: Axis::linear("slack (ms); negative: late", -30.0..6.0),
        y: Axis::linear("share of the jobs", 0.0..1.0),
        lines: lines.collect(),
        names: Corner::UpperLeft,
    };
    slack.draw(machine.out(), SLACK)
}
