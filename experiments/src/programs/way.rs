//! By what means a program is started.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::Context;

use super::program::TestedProgram;
use super::situation::Situation;
use crate::machine::binary;

/// The ways without onbeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Plain {
    /// As it is.
    Nothing,
    /// `nice -n -20`.
    Nice,
    /// `chrt -r 1`.
    Chrt,
    /// A control group with the largest weight: `cpu.weight`, or `cpu.shares` of version 1.
    Weight,
    /// SCHED_DEADLINE set by a person, for the programs of which a person could know the numbers.
    Deadline,
    /// SCHED_RR for the threads that ask for it, as RealtimeKit gives it.
    Rtkit,
}

impl Plain {
    const fn name(self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::Nice => "nice -n -20",
            Self::Chrt => "chrt -r 1",
            Self::Weight => "cpu.weight",
            Self::Deadline => "by hand",
            Self::Rtkit => "RealtimeKit",
        }
    }
}

/// A variant of onbeat.
#[derive(Clone, Debug)]
pub(super) struct Variant {
    name: String,
    binary: Option<PathBuf>,
    options: Vec<String>,
}

/// `NAME[@BINARY]=OPTIONS`.
pub(super) fn variant(text: &str) -> Result<Variant, String> {
    let (name, options) = text
        .split_once('=')
        .ok_or("write NAME=OPTIONS, as in hard=--hard")?;
    let (name, binary) = match name.split_once('@') {
        Some((name, binary)) => (name, Some(PathBuf::from(binary))),
        None => (name, None),
    };
    Ok(Variant {
        name: name.to_owned(),
        binary,
        options: options.split_whitespace().map(str::to_owned).collect(),
    })
}

/// A way.
#[derive(Clone, Debug)]
pub(super) enum ProgramWay {
    Plain(Plain),
    Onbeat(Variant),
}

/// These, and the variants of onbeat: onbeat as it is if there are none.
pub(super) fn all(plain: &[Plain], variants: &[Variant]) -> Vec<ProgramWay> {
    let others = plain.iter().filter(|way| **way != Plain::Nothing);
    let mut ways = vec![ProgramWay::Plain(Plain::Nothing)];
    ways.extend(others.copied().map(ProgramWay::Plain));
    if variants.is_empty() {
        let onbeat = Variant {
            name: "onbeat".to_owned(),
            binary: None,
            options: Vec::new(),
        };
        ways.push(ProgramWay::Onbeat(onbeat));
    }
    ways.extend(variants.iter().cloned().map(ProgramWay::Onbeat));
    ways
}

impl ProgramWay {
    /// Above its column.
    pub(super) fn name(&self) -> &str {
        match self {
            Self::Plain(plain) => plain.name(),
            Self::Onbeat(variant) => &variant.name,
        }
    }

    /// Whether it makes sense for the program there: on an idle machine only harm is looked for.
    pub(super) fn suits(&self, program: TestedProgram, situation: Situation) -> bool {
        let batch_alone = !program.is_batch() || situation == Situation::Hogs;
        batch_alone
            && match self {
                Self::Plain(Plain::Nothing) | Self::Onbeat(_) => true,
                _ if situation == Situation::Idle => false,
                Self::Plain(Plain::Deadline) => program.by_hand().is_some(),
                Self::Plain(Plain::Rtkit) => program.asks_for_realtime(),
                Self::Plain(_) => true,
            }
    }

    /// `program` with its arguments, started by this way.
    pub(super) fn wrap(
        &self,
        program: &Command,
        by_hand: Option<(u64, u64)>,
    ) -> anyhow::Result<Command> {
        let (first, arguments): (OsString, Vec<OsString>) = match self {
            Self::Plain(Plain::Nothing | Plain::Rtkit) => ("env".into(), Vec::new()),
            Self::Plain(Plain::Nice) => ("nice".into(), words("-n -20")),
            Self::Plain(Plain::Chrt) => ("chrt".into(), words("-r 1")),
            Self::Plain(Plain::Weight) => {
                let enter = "echo $$ >\"$0\" && exec \"$@\"";
                let group = WeightGroup::make()?.processes();
                let arguments = ["-c".into(), enter.into(), group.into_os_string()];
                ("sh".into(), arguments.to_vec())
            }
            Self::Plain(Plain::Deadline) => {
                let (runtime_us, period_us) = by_hand.context("nobody knows its numbers")?;
                let numbers = format!("-R -d -T {runtime_us}000 -P {period_us}000 0");
                ("chrt".into(), words(&numbers))
            }
            Self::Onbeat(variant) => {
                let onbeat = match &variant.binary {
                    Some(binary) => binary.clone(),
                    None => binary()?,
                };
                let mut arguments = words("run --children --quiet");
                arguments.extend(variant.options.iter().map(OsString::from));
                arguments.push("--".into());
                (onbeat.into_os_string(), arguments)
            }
        };
        let mut command = Command::new(first);
        command
            .args(arguments)
            .arg(program.get_program())
            .args(program.get_args())
            .stdout(Stdio::null());
        for (name, value) in program.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        if let Some(folder) = program.get_current_dir() {
            command.current_dir(folder);
        }
        Ok(command)
    }

    /// Gives the threads of `process` whose name begins with `asks` what RealtimeKit would.
    pub(super) fn grant(&self, process: u32, asks: &str) {
        if !matches!(self, Self::Plain(Plain::Rtkit)) {
            return;
        }
        for (tid, name) in threads_below(process) {
            if name.starts_with(asks) {
                // A thread that has ended meanwhile asks for nothing.
                let _ = Command::new("chrt")
                    .args(["-r", "-p", "10", &tid.to_string()])
                    .status();
            }
        }
    }
}

fn words(text: &str) -> Vec<OsString> {
    text.split_whitespace().map(OsString::from).collect()
}

/// The threads of a process and of those that it started, with their names.
fn threads_below(process: u32) -> Vec<(u32, String)> {
    let mut found = Vec::new();
    let folder = format!("/proc/{process}/task");
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let Some(tid) = number(&entry.file_name()) else {
            continue;
        };
        let read = |name: &str| fs::read_to_string(entry.path().join(name)).unwrap_or_default();
        found.push((tid, read("comm").trim().to_owned()));
        let children = read("children");
        for child in children.split_whitespace().filter_map(|c| c.parse().ok()) {
            found.extend(threads_below(child));
        }
    }
    found
}

fn number(name: &OsStr) -> Option<u32> {
    name.to_str()?.parse().ok()
}

/// A control group with the largest weight, of whichever version has the CPU controller here.
struct WeightGroup {
    folder: PathBuf,
}

impl WeightGroup {
    const NAME: &'static str = "onbeat-programs";

    fn make() -> anyhow::Result<Self> {
        let two = Path::new("/sys/fs/cgroup");
        let (root, file, weight) = if two.join("cgroup.controllers").exists() {
            // Fails if it is on already; if it cannot be, the weight's file is missing below.
            let _ = fs::write(two.join("cgroup.subtree_control"), "+cpu");
            (two.to_owned(), "cpu.weight", "10000")
        } else {
            (two.join("cpu"), "cpu.shares", "262144")
        };
        let folder = root.join(Self::NAME);
        let _ = fs::create_dir(&folder);
        fs::write(folder.join(file), weight)
            .with_context(|| format!("no CPU controller in {}", root.display()))?;
        Ok(Self { folder })
    }

    fn processes(&self) -> PathBuf {
        self.folder.join("cgroup.procs")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variant_has_a_name_options_and_perhaps_a_binary_of_its_own() {
        let before = variant("before@/tmp/onbeat=--reclaim --pipelines off").unwrap();
        assert_eq!(before.name, "before");
        assert_eq!(before.binary, Some(PathBuf::from("/tmp/onbeat")));
        assert_eq!(before.options, ["--reclaim", "--pipelines", "off"]);
        assert!(variant("soft=").unwrap().options.is_empty());
        assert!(variant("soft").is_err());
    }

    #[test]
    fn a_program_is_started_by_the_way_with_its_own_arguments_and_environment() {
        let mut program = Command::new("mpv");
        program.arg("film.mkv").env("DISPLAY", ":9");
        let by = |plain| {
            let command = ProgramWay::Plain(plain).wrap(&program, Some((24_000, 40_000)));
            let command = command.unwrap();
            let words = std::iter::once(command.get_program()).chain(command.get_args());
            let words: Vec<&str> = words.filter_map(OsStr::to_str).collect();
            assert!(command.get_envs().any(|(name, _)| name == "DISPLAY"));
            words.join(" ")
        };
        assert_eq!(by(Plain::Chrt), "chrt -r 1 mpv film.mkv");
        assert_eq!(
            by(Plain::Deadline),
            "chrt -R -d -T 24000000 -P 40000000 0 mpv film.mkv"
        );
    }
}
