//! A PipeWire of its own: a sink that leads nowhere and asks for a buffer each 10.7 ms, and
//! players, none of them with real-time priority, as an ordinary user has it without RealtimeKit.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

use anyhow::{Context, bail};
use tempfile::TempDir;

use super::{Machine, Program};

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

const CYCLE_US: f64 = 512e6 / 48e3;
/// How long the server may take to pass cycles on.
const PATIENCE: Duration = Duration::from_secs(2);
/// The state of a player that was done in time: its process, in the profiler's columns.
const FINISHED: &str = "3";
/// The first columns are the driver's, then each player has `PLAYER_COLUMNS`, of which one is its
/// state.
const DRIVER_COLUMNS: usize = 4;
const PLAYER_COLUMNS: usize = 8;
const STATE_COLUMN: usize = 6;

/// The server with its session manager; dropping it ends it.
pub(crate) struct Pipewire {
    _manager: Program,
    _server: Program,
    home: TempDir,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Cycle {
    /// When it was over, in seconds since listening was to begin.
    pub(crate) at_s: f64,
    /// Every player was done before the next one began: else PipeWire counts an xrun.
    pub(crate) finished: bool,
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
        let server = Program::start(server, &machine.file("programs.pipewire.stderr"))?;
        let socket = home.join("pipewire-0");
        if !machine.wait_for(Duration::from_secs(30), || socket.exists())? {
            bail!("PipeWire does not start: its messages are in programs.pipewire.stderr");
        }
        let mut manager = in_home(home, "dbus-run-session");
        manager.args(["--", "wireplumber"]);
        let manager = Program::start(manager, &machine.file("programs.wireplumber.stderr"))?;
        // It looks for devices that there are none of, and then links players.
        machine.wait(Duration::from_secs(6))?;
        Ok(Self {
            _manager: manager,
            _server: server,
            home: folder,
        })
    }

    pub(crate) fn player(&self, sound: &Path) -> Command {
        let mut player = in_home(self.home.path(), "pw-cat");
        player
            .env("PIPEWIRE_CONFIG_DIR", self.home.path())
            .arg("--playback")
            .arg(sound);
        player
    }

    pub(crate) fn profile(&self, machine: &Machine) -> anyhow::Result<Profile> {
        let home = self.home.path();
        let log = home.join("profile");
        let _ = fs::remove_file(&log);
        let mut command = in_home(home, "pw-profiler");
        command.arg("--output").arg(&log).current_dir(home);
        let messages = machine.file("programs.pw-profiler.stderr");
        let profiler = Program::start(command, &messages)?;
        // Other versions may not say it: they had time to attach.
        machine.wait_for(Duration::from_secs(2), || {
            fs::read_to_string(&messages).is_ok_and(|said| said.contains("Attaching"))
        })?;
        Ok(Profile { log, profiler })
    }
}

/// Listens to the cycles of a PipeWire. The server passes them on 16 KiB at a time, which is what
/// 28 of them take.
pub(crate) struct Profile {
    log: PathBuf,
    profiler: Program,
}

impl Profile {
    /// The cycles from `from` to `to`, which is past. Players have to run until this returns.
    pub(crate) fn end(
        mut self,
        machine: &Machine,
        from: SystemTime,
        to: SystemTime,
    ) -> anyhow::Result<Vec<Cycle>> {
        let length = || fs::metadata(&self.log).map_or(0, |log| log.len());
        let before = length();
        // Only what is passed on from here on ends at a time that is known.
        let until = SystemTime::now() + PATIENCE;
        while length() == before && SystemTime::now() < until {
            machine.wait(Duration::from_millis(1))?;
        }
        let heard = SystemTime::now();
        self.profiler.end();
        let text = fs::read_to_string(&self.log)
            .with_context(|| format!("the profiler wrote no {}", self.log.display()))?;
        let end = to.duration_since(from)?.as_secs_f64();
        let mut cycles = cycles(&text, heard.duration_since(from)?.as_secs_f64());
        cycles.retain(|cycle| (0.0..=end).contains(&cycle.at_s));
        Ok(cycles)
    }
}

/// From the profiler's lines, one a cycle, of which the last one is of `heard_s`. The server makes
/// up for a cycle that it began late.
fn cycles(profile: &str, heard_s: f64) -> Vec<Cycle> {
    let mut cycles: Vec<Cycle> = profile.lines().filter_map(Cycle::of).collect();
    for (back, cycle) in cycles.iter_mut().rev().enumerate() {
        cycle.at_s = heard_s - back as f64 * CYCLE_US / 1e6;
    }
    cycles
}

impl Cycle {
    fn of(line: &str) -> Option<Self> {
        let columns: Vec<&str> = line.split('\t').collect();
        columns.first()?.trim().parse::<f64>().ok()?;
        let players = columns.get(DRIVER_COLUMNS..).unwrap_or_default();
        let mut states = players
            .chunks_exact(PLAYER_COLUMNS)
            .filter_map(|player| player.get(STATE_COLUMN))
            .map(|state| state.trim())
            .filter(|state| !state.is_empty());
        Some(Self {
            at_s: 0.0,
            finished: states.all(|state| state == FINISHED),
        })
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
    fn a_cycle_with_a_player_that_was_not_done_is_told() {
        let lines = [
            "10666\t130\t0\t10666\t29\t2\t96\t110\t94\t14\t3\t0\t30\t11\t37\t56\t26\t19\t3\t0\t \t \t ",
            "10700\t130\t0\t10666\t29\t2\t96\t110\t94\t14\t2\t0\t30\t11\t37\t56\t26\t19\t1\t0\t \t \t ",
            "16700\t130\t0\t10666\t29\t2\t96\t110\t94\t14\t3\t0\t \t \t \t \t \t \t \t \t ",
        ];
        let cycles = cycles(&lines.join("\n"), 6.0);
        let finished: Vec<bool> = cycles.iter().map(|cycle| cycle.finished).collect();
        assert_eq!(finished, [true, false, true]);
        let at_ms: Vec<_> = cycles.iter().map(|c| (c.at_s * 1e3).round()).collect();
        assert_eq!(
            at_ms,
            [5979.0, 5989.0, 6000.0],
            "back from when the last was heard of"
        );
        assert_eq!(super::cycles("no profile", 6.0), []);
    }
}
