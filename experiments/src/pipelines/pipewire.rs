//! A PipeWire of its own: a sink that leads nowhere and asks for a buffer each 10.7 ms, and
//! players, none of them with real-time priority, as an ordinary user has it without RealtimeKit.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, bail};
use tempfile::TempDir;

use crate::machine::{Machine, Program};

/// The server: 512 samples at 48 kHz a cycle.
const SERVER: &str = "\
context.properties = { core.daemon = true  core.name = pipewire-0  support.dbus = false
  default.clock.quantum = 512  default.clock.min-quantum = 512  default.clock.max-quantum = 512 }
context.spa-libs = { audio.convert.* = audioconvert/libspa-audioconvert  support.* = support/libspa-support }
context.modules = [
  { name = libpipewire-module-protocol-native }  { name = libpipewire-module-profiler }
  { name = libpipewire-module-metadata }  { name = libpipewire-module-spa-node-factory }
  { name = libpipewire-module-client-node }  { name = libpipewire-module-client-device }
  { name = libpipewire-module-access  args = { } }  { name = libpipewire-module-adapter }
  { name = libpipewire-module-link-factory }  { name = libpipewire-module-session-manager }
]
context.objects = [
  { factory = adapter
    args = { factory.name = support.null-audio-sink  node.name = nowhere  media.class = Audio/Sink
             object.linger = true  audio.position = [ FL FR ] } }
]
";

/// A player: without the module that raises its priority.
const CLIENT: &str = "\
context.spa-libs = { audio.convert.* = audioconvert/libspa-audioconvert  support.* = support/libspa-support }
context.modules = [
  { name = libpipewire-module-protocol-native }  { name = libpipewire-module-client-node }
  { name = libpipewire-module-adapter }  { name = libpipewire-module-metadata }
  { name = libpipewire-module-session-manager }
]
";

/// The length of a cycle, in microseconds.
const CYCLE_US: f64 = 512e6 / 48e3;
/// The state of a player that was done in time: its process, in the profiler's columns.
const FINISHED: &str = "3";
/// The first columns are the driver's, then each player has so many, of which one is its state.
const DRIVER_COLUMNS: usize = 4;
const PLAYER_COLUMNS: usize = 8;
const STATE_COLUMN: usize = 6;

/// The server with its session manager; dropping it ends it.
pub(crate) struct Pipewire {
    _manager: Program,
    _server: Program,
    /// The last to go.
    home: TempDir,
}

/// What became of its cycles.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize)]
pub(crate) struct Cycles {
    /// How many began.
    pub(crate) all: usize,
    /// In which a player was not done when the next one began: what PipeWire counts as its xruns.
    pub(crate) not_finished: usize,
    /// That began more than half a cycle late: a sound card would have run dry.
    pub(crate) late: usize,
}

impl Pipewire {
    /// Starts it, and waits until players can be started.
    pub(crate) fn start(machine: &Machine) -> anyhow::Result<Self> {
        // Not among the figures: the path of a socket has to be short.
        let folder = tempfile::tempdir().context("cannot make a folder")?;
        let home = folder.path();
        for (name, text) in [
            ("pipewire.conf", SERVER),
            ("client.conf", CLIENT),
            ("client-rt.conf", CLIENT),
        ] {
            fs::write(home.join(name), text)?;
        }
        let mut server = in_home(home, "pipewire");
        server.arg("-c").arg(home.join("pipewire.conf"));
        let server = Program::start(server, &machine.file("pipelines.pipewire.stderr"))?;
        let socket = home.join("pipewire-0");
        if !machine.wait_for(Duration::from_secs(30), || socket.exists())? {
            bail!("PipeWire does not start: its messages are in pipelines.pipewire.stderr");
        }
        let mut manager = in_home(home, "dbus-run-session");
        manager.args(["--", "wireplumber"]);
        let manager = Program::start(manager, &machine.file("pipelines.wireplumber.stderr"))?;
        // It looks for devices that there are none of, and then links players.
        machine.wait(Duration::from_secs(6))?;
        Ok(Self {
            _manager: manager,
            _server: server,
            home: folder,
        })
    }

    /// Starts to play `sound`.
    pub(super) fn play(
        &self,
        machine: &Machine,
        number: usize,
        sound: &Path,
    ) -> anyhow::Result<Program> {
        Program::start(
            self.player(sound),
            &machine.file(&format!("pipelines.pw-cat.{number}.stderr")),
        )
    }

    /// What plays `sound`.
    pub(crate) fn player(&self, sound: &Path) -> Command {
        let mut player = in_home(self.home.path(), "pw-cat");
        player
            .env("PIPEWIRE_CONFIG_DIR", self.home.path())
            .arg("--playback")
            .arg(sound);
        player
    }

    /// Counts the cycles of the next `time`.
    pub(crate) fn count(&self, machine: &Machine, time: Duration) -> anyhow::Result<Cycles> {
        let log = self.home.path().join("profile");
        let mut profiler = in_home(self.home.path(), "pw-profiler");
        profiler
            .arg("--output")
            .arg(&log)
            .current_dir(self.home.path());
        let mut profiler = Program::start(profiler, &machine.file("pipelines.pw-profiler.stderr"))?;
        machine.wait(time)?;
        profiler.end();
        let text = fs::read_to_string(&log)
            .with_context(|| format!("the profiler wrote no {}", log.display()))?;
        Ok(Cycles::of(&text))
    }
}

impl Cycles {
    /// From the profiler's lines, one a cycle.
    fn of(profile: &str) -> Self {
        let mut cycles = Self::default();
        for line in profile.lines() {
            let columns: Vec<&str> = line.split('\t').collect();
            let Some(period_us) = columns.first().and_then(|c| c.trim().parse::<f64>().ok()) else {
                continue;
            };
            let players = columns.get(DRIVER_COLUMNS..).unwrap_or_default();
            let states = players
                .chunks_exact(PLAYER_COLUMNS)
                .filter_map(|player| player.get(STATE_COLUMN))
                .map(|state| state.trim());
            cycles.all += 1;
            cycles.not_finished += usize::from(
                states
                    .filter(|state| !state.is_empty())
                    .any(|state| state != FINISHED),
            );
            cycles.late += usize::from(period_us > CYCLE_US * 1.5);
        }
        cycles
    }
}

fn in_home(home: &Path, program: &str) -> Command {
    let mut command = Command::new(program);
    command
        .env("XDG_RUNTIME_DIR", home)
        .env("HOME", home)
        .env_remove("DISPLAY")
        .stdout(Stdio::null());
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cycle_with_an_unfinished_player_and_one_that_began_late_are_counted() {
        let lines = [
            "10666\t130\t0\t10666\t29\t2\t96\t110\t94\t14\t3\t0\t30\t11\t37\t56\t26\t19\t3\t0\t \t \t ",
            "10700\t130\t0\t10666\t29\t2\t96\t110\t94\t14\t2\t0\t30\t11\t37\t56\t26\t19\t1\t0\t \t \t ",
            "16700\t130\t0\t10666\t29\t2\t96\t110\t94\t14\t3\t0\t \t \t \t \t \t \t \t \t ",
        ];
        let counted = Cycles::of(&lines.join("\n"));
        let expected = Cycles {
            all: 3,
            not_finished: 1,
            late: 1,
        };
        assert_eq!(counted, expected);
        assert_eq!(Cycles::of("no profile"), Cycles::default());
    }
}
