//! Three players that do not fit, under the supervisor (LFS++, section 4.2): what each is granted,
//! and what that does to its frames, by weights, a minimum and a cap.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use onbeat_act::attributes::{Attributes, Policy};
use onbeat_decide::supervisor::{Limits, Request, arbitrate};
use onbeat_model::{Bandwidth, Reservation, Span, TaskId};
use serde::Serialize;
use serde_json::json;

use crate::machine::{Hogs, Machine, Onbeat, Program, cpu_ns, find_program};
use crate::media::{Clip, arguments_without_display};
use crate::results::{Ran, Table, or_dash, percent, publish, quantile};

const NAME: &str = "supervisor";
const PLAYERS: [&str; 3] = ["one", "two", "three"];
const PERIOD: Span = Span::from_ms(40);
/// How long the rhythms and demands may take to be found; nothing counts before.
const LEARNING: Duration = Duration::from_secs(6);
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// The most for all reservations together, in CPUs; three players want half as much again.
const TOTAL: f64 = 0.6;
const MINIMUM: f64 = 0.15;
const PER_TASK: f64 = 0.18;

/// The options of the command.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// For how long frames count, after 6 s in which the demands are learned
    #[arg(long, value_name = "SECONDS", default_value_t = 8,
          value_parser = clap::value_parser!(u64).range(4..=600))]
    seconds: u64,
    /// CPU hogs for each CPU
    #[arg(long, value_name = "N", default_value_t = 4)]
    hogs: usize,
    /// Runs of each way
    #[arg(long, value_name = "N", default_value_t = 2)]
    runs: usize,
}

#[derive(Clone, Copy, Debug)]
struct Division {
    name: &'static str,
    means: DivisionMeans,
    weights: [f64; 3],
    minimum: Option<f64>,
    per_task: Option<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum DivisionMeans {
    Nothing,
    RoundRobin,
    Onbeat {
        /// The most for all reservations together, in CPUs; none for onbeat's own limit.
        total: Option<f64>,
        hard: bool,
    },
}

const ALL_FIT: DivisionMeans = DivisionMeans::Onbeat {
    total: None,
    hard: false,
};
const EQUAL: Division = Division {
    name: "60% of a CPU, weights 1:1:1",
    means: DivisionMeans::Onbeat {
        total: Some(TOTAL),
        hard: false,
    },
    weights: [1.0; 3],
    minimum: None,
    per_task: None,
};
const WEIGHTS: Division = Division {
    name: "60% of a CPU, weights 4:2:1",
    weights: [4.0, 2.0, 1.0],
    ..EQUAL
};

/// The players want as much as is granted where all fit: the ways after it are held against that.
const WAYS: [Division; 8] = [
    Division {
        name: "nothing",
        means: DivisionMeans::Nothing,
        ..EQUAL
    },
    Division {
        name: "chrt -r 1",
        means: DivisionMeans::RoundRobin,
        ..EQUAL
    },
    Division {
        name: "all fit",
        means: ALL_FIT,
        ..EQUAL
    },
    EQUAL,
    WEIGHTS,
    Division {
        name: "the same, minimum 15%",
        minimum: Some(MINIMUM),
        ..WEIGHTS
    },
    Division {
        name: "the same, at most 18% each",
        per_task: Some(PER_TASK),
        ..WEIGHTS
    },
    Division {
        name: "the same, hard",
        means: DivisionMeans::Onbeat {
            total: Some(TOTAL),
            hard: true,
        },
        ..WEIGHTS
    },
];

#[derive(Clone, Copy, Debug)]
struct Had {
    granted: f64,
    used: f64,
    frames: f64,
}

#[derive(Debug, Serialize)]
struct Figures {
    way: &'static str,
    player: &'static str,
    weight: f64,
    /// In CPUs: by the rule from the requests, as the kernel was told, and as it was used.
    by_rule: Option<f64>,
    granted: f64,
    used: f64,
    frames: f64,
    frames_least: f64,
    frames_most: f64,
    due: f64,
}

pub(crate) fn run(machine: &Machine, args: &Args) -> anyhow::Result<()> {
    machine.need_root()?;
    let facts = machine.facts();
    let clip = Clip::of(machine, 60)?;
    let players = Players::new()?;
    let _hogs = Hogs::start(machine, args.hogs * Machine::cpus())?;
    let mut figures = Vec::new();
    let mut wanted = None;
    for (n, way) in (1..).zip(&WAYS) {
        println!("[{n}/{}] {}: {} runs ...", WAYS.len(), way.name, args.runs);
        let runs = (0..args.runs)
            .map(|_| players.play(machine, args, &clip, way))
            .collect::<anyhow::Result<Vec<_>>>()?;
        if way.means == ALL_FIT {
            wanted = Some([0, 1, 2].map(|player| median(&runs, player, |had| had.granted)));
        }
        let by_rule = wanted.and_then(|wanted| by_rule(way, wanted));
        for (player, name) in PLAYERS.into_iter().enumerate() {
            let frames: Vec<f64> = runs.iter().map(|run| run[player].frames).collect();
            figures.push(Figures {
                way: way.name,
                player: name,
                weight: way.weights[player],
                by_rule: by_rule.map(|granted| granted[player]),
                granted: median(&runs, player, |had| had.granted),
                used: median(&runs, player, |had| had.used),
                frames: quantile(&frames, 0.5),
                frames_least: quantile(&frames, 0.0),
                frames_most: quantile(&frames, 1.0),
                due: args.seconds as f64 / PERIOD.as_secs_f64(),
            });
        }
    }
    let paper = json!({ "section": "LFS++, 4.2: the compression function is left open" });
    publish(
        machine.out(),
        &Ran::Live(facts),
        NAME,
        &table(&figures),
        &figures,
        paper,
    )
}

fn median(runs: &[[Had; 3]], player: usize, figure: impl Fn(&Had) -> f64) -> f64 {
    let figures: Vec<f64> = runs.iter().map(|run| figure(&run[player])).collect();
    quantile(&figures, 0.5)
}

/// The shares that the supervisor's rule makes of those that the players want; none for the ways
/// without a limit of all together.
fn by_rule(way: &Division, wanted: [f64; 3]) -> Option<[f64; 3]> {
    let DivisionMeans::Onbeat {
        total: Some(total), ..
    } = way.means
    else {
        return None;
    };
    let limits = Limits {
        total: Bandwidth::from_cpus(total),
        per_task: Bandwidth::from_cpus(way.per_task.unwrap_or(Limits::DEFAULT_PER_TASK)),
        shortest_runtime: Span::ZERO,
    };
    let request = |player: usize| {
        let wanted = Bandwidth::from_cpus(wanted[player]);
        let least = Bandwidth::from_cpus(way.minimum.unwrap_or(0.0));
        Some(Request {
            task: TaskId::recorded(player as u32),
            wanted: Reservation::implicit(wanted.runtime_in(PERIOD), PERIOD).ok()?,
            least: least.min(wanted),
            weight: way.weights[player],
        })
    };
    let requests = [request(0)?, request(1)?, request(2)?];
    let outcome = arbitrate(&requests, &limits);
    let mut granted = outcome.grants.iter().map(|grant| {
        let reservation = grant.reservation?;
        Some(reservation.bandwidth().as_cpus())
    });
    Some([granted.next()??, granted.next()??, granted.next()??])
}

struct Players {
    folder: tempfile::TempDir,
}

impl Players {
    fn new() -> anyhow::Result<Self> {
        let folder = tempfile::tempdir().context("no temporary folder")?;
        let player = find_program("mplayer")
            .context("no mplayer: scripts/setup.sh experiments installs it")?;
        for name in PLAYERS {
            symlink(&player, folder.path().join(name)).context("cannot name a player")?;
        }
        Ok(Self { folder })
    }

    fn file(&self, player: &str, what: &str) -> PathBuf {
        self.folder.path().join(format!("{player}.{what}"))
    }

    fn play(
        &self,
        machine: &Machine,
        args: &Args,
        clip: &Clip,
        way: &Division,
    ) -> anyhow::Result<[Had; 3]> {
        // Each player leaves its number, so that the kernel can be asked about it.
        let script = r#"cd "$0"; for name in one two three; do
            "./$name" "$@" >"$name.out" 2>&1 & echo $! >"$name.pid"; done; wait"#;
        for name in PLAYERS {
            // The file of an earlier run must not be taken for this one's; it may not exist.
            let _ = fs::remove_file(self.file(name, "pid"));
        }
        let mut command = self.started_by(machine, way)?;
        command
            .args(["-c", script])
            .arg(self.folder.path())
            .args(arguments_without_display(clip.path()))
            .stdout(Stdio::null());
        let _running = Program::start(command, &machine.file(&format!("{NAME}.stderr")))?;
        machine.wait(LEARNING)?;
        let pids = PLAYERS.map(|name| self.pid(name));
        let [Some(one), Some(two), Some(three)] = pids else {
            bail!("a player did not start: their messages are in {NAME}.stderr among the figures");
        };
        let pids = [one, two, three];
        let before = self.counts(pids)?;
        let began = Instant::now();
        let mut granted = [0.0; 3];
        let mut looks = 0.0;
        while began.elapsed() < Duration::from_secs(args.seconds) {
            for (sum, pid) in granted.iter_mut().zip(pids) {
                *sum += reserved(pid);
            }
            looks += 1.0;
            machine.wait(LOOK_EVERY)?;
        }
        let after = self.counts(pids)?;
        let seconds = began.elapsed().as_secs_f64();
        Ok([0, 1, 2].map(|player| Had {
            granted: granted[player] / looks,
            used: (after[player].1 - before[player].1) / seconds,
            // As many as in the time that was asked for.
            frames: ((after[player].0 - before[player].0) * args.seconds as f64 / seconds).round(),
        }))
    }

    fn started_by(&self, machine: &Machine, way: &Division) -> anyhow::Result<Command> {
        let (total, hard) = match way.means {
            DivisionMeans::Nothing => return Ok(Command::new("sh")),
            DivisionMeans::RoundRobin => {
                let mut command = Command::new("chrt");
                command.args(["-r", "1", "sh"]);
                return Ok(command);
            }
            DivisionMeans::Onbeat { total, hard } => (total, hard),
        };
        let mut options = vec!["--children".to_owned()];
        if hard {
            options.push("--hard".to_owned());
        }
        if let Some(total) = total {
            let percent = total * 100.0 / Machine::cpus() as f64;
            options.extend(["--cap".to_owned(), format!("{percent}%")]);
        }
        let mut set = |key: &str, value: String| options.push(format!("--config={key}={value}"));
        for (name, weight) in PLAYERS.iter().zip(way.weights) {
            set(&format!("weights.{name}"), format!("{weight:?}"));
        }
        if let Some(share) = way.minimum {
            set("limits.minimum", format!("\"{}%\"", share * 100.0));
        }
        if let Some(share) = way.per_task {
            set("limits.per-task", format!("\"{}%\"", share * 100.0));
        }
        Ok(Onbeat::new(machine, NAME)?.run(options, "sh"))
    }

    fn pid(&self, player: &str) -> Option<u32> {
        let text = fs::read_to_string(self.file(player, "pid")).ok()?;
        text.trim().parse().ok()
    }

    fn counts(&self, pids: [u32; 3]) -> anyhow::Result<[(f64, f64); 3]> {
        let count = |player: usize| -> anyhow::Result<(f64, f64)> {
            let lines = fs::read(self.file(PLAYERS[player], "out"))?;
            let folder = format!("/proc/{}", pids[player]);
            let ns = cpu_ns(folder.as_ref())
                .with_context(|| format!("player {} has ended", PLAYERS[player]))?;
            Ok((frames(&lines) as f64, ns as f64 / 1e9))
        };
        Ok([count(0)?, count(1)?, count(2)?])
    }
}

fn frames(output: &[u8]) -> usize {
    output.windows(4).filter(|piece| *piece == b"A-V:").count()
}

fn reserved(tid: u32) -> f64 {
    match Attributes::get(tid).map(|attributes| attributes.policy) {
        Ok(Policy::Deadline(deadline)) => {
            let [runtime, period] = [deadline.runtime_ns, deadline.period_ns].map(Span::from_ns);
            Bandwidth::of(runtime, period).as_cpus()
        }
        _ => 0.0,
    }
}

fn table(figures: &[Figures]) -> Table {
    Table::of(figures, |figure| {
        let frames = format!(
            "{:.0} ({:.0} to {:.0})",
            figure.frames, figure.frames_least, figure.frames_most
        );
        [
            (
                "players beside hogs",
                format!("{}: {}", figure.way, figure.player),
            ),
            ("weight", figure.weight.to_string()),
            (
                "by the rule",
                or_dash(figure.by_rule, |share| percent(share, 0)),
            ),
            ("granted", percent(figure.granted, 0)),
            ("used", percent(figure.used, 0)),
            ("frames", frames),
            ("of those due", percent(figure.frames / figure.due, 0)),
        ]
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_counted_by_their_status_lines() {
        let output = b"Starting playback...\nA:   0.1 V:   0.1 A-V:  0.0\rA: 0.1 A-V: 0.1\r";
        assert_eq!(frames(output), 2);
    }

    #[test]
    fn the_rule_grants_by_weight_above_the_minimum() {
        let wanted = [0.3, 0.3, 0.3];
        let near = |granted: [f64; 3], expected: [f64; 3]| {
            let mut pairs = granted.into_iter().zip(expected);
            assert!(
                pairs.all(|(a, b)| (a - b).abs() < 1e-6),
                "{granted:?}, not {expected:?}"
            );
        };
        let of = |n: usize| by_rule(&WAYS[n], wanted);
        assert!(of(0).is_none() && of(1).is_none() && of(2).is_none());
        near(of(3).unwrap(), [0.2; 3]);
        near(of(4).unwrap(), [0.3, 0.2, 0.1]);
        near(of(5).unwrap(), [0.3, 0.15, 0.15]);
        near(of(6).unwrap(), [0.18; 3]);
    }
}
