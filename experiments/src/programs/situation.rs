//! The other programs that run while one is measured.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::Context;
use onbeat_sense::identity::children;
use serde::{Deserialize, Serialize};

use crate::machine::{Machine, Program as Running, cpu_ns};

/// The other programs that run.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Situation {
    /// Nothing.
    Idle,
    /// CPU hogs, some for each CPU.
    Hogs,
    /// A large C++ build, as many compilers at once as hogs.
    Build,
    /// Hogs, and a transcode that is started by the same means as the program.
    Two,
}

impl Situation {
    /// As on the command line.
    pub(super) fn name(self) -> String {
        format!("{self:?}").to_lowercase()
    }

    /// Above its table.
    pub(super) const fn title(self) -> &'static str {
        match self {
            Self::Idle => "On an idle machine",
            Self::Hogs => "Beside CPU hogs",
            Self::Build => "Beside a C++ build",
            Self::Two => "Beside CPU hogs and a transcode that is started by the same means",
        }
    }

    /// Starts it, and waits until it has settled.
    pub(super) fn start(self, machine: &Machine, hogs: u32) -> anyhow::Result<Load> {
        let load = match self {
            Self::Idle => return Ok(Load::None),
            Self::Hogs | Self::Two => {
                let mut command = Command::new("stress-ng");
                command
                    .args(["--cpu", &hogs.to_string(), "--cpu-method", "int64"])
                    .stdout(Stdio::null());
                Load::Hogs(Running::start(command, &machine.file("programs.hogs"))?)
            }
            Self::Build => Load::Build {
                _program: build(machine, hogs)?,
                built: machine.file("programs.build"),
            },
        };
        machine.wait(Duration::from_secs(1))?;
        Ok(load)
    }
}

/// The load beside a program; dropping it ends it.
pub(super) enum Load {
    None,
    Hogs(Running),
    Build { _program: Running, built: PathBuf },
}

impl Load {
    /// Its work up to now: seconds of CPU time of the hogs, files that were compiled.
    pub(super) fn done(&self) -> Option<f64> {
        match self {
            Self::None => None,
            Self::Hogs(program) => {
                let hogs = children(program.pid()).into_iter();
                let ns = hogs.filter_map(|pid| cpu_ns(Path::new(&format!("/proc/{pid}"))));
                Some(ns.sum::<u64>() as f64 / 1e9)
            }
            Self::Build { built, .. } => {
                Some(fs::read_dir(built.join("objects")).ok()?.count() as f64)
            }
        }
    }
}

/// The source of each file of the build.
const SOURCE: &str = r#"
#include <algorithm>
#include <functional>
#include <iostream>
#include <map>
#include <regex>
#include <string>
#include <vector>
template <int N> struct Deep { static int of(const std::map<std::string, int> &m) {
    return Deep<N - 1>::of(m) + std::count_if(m.begin(), m.end(), [](auto &e) { return e.second == N; }); } };
template <> struct Deep<0> { static int of(const std::map<std::string, int> &) { return 0; } };
int part(const std::string &text) {
    std::map<std::string, int> words;
    std::regex word("[a-z]+");
    for (std::sregex_iterator i(text.begin(), text.end(), word), end; i != end; ++i) words[i->str()]++;
    return Deep<120>::of(words);
}
"#;

/// More files than any run has time for.
const FILES: u32 = 2000;

fn build(machine: &Machine, jobs: u32) -> anyhow::Result<Running> {
    let folder = machine.file("programs.build");
    let objects = folder.join("objects");
    let _ = fs::remove_dir_all(&objects);
    fs::create_dir_all(&objects).with_context(|| format!("cannot make {}", objects.display()))?;
    fs::write(folder.join("part.cc"), SOURCE)?;
    let makefile = format!(
        "all: $(shell seq -f objects/%g.o {FILES})\nobjects/%.o:\n\t@g++ -O2 -c -o $@ part.cc\n"
    );
    fs::write(folder.join("Makefile"), makefile)?;
    let mut command = Command::new("make");
    command
        .arg("-C")
        .arg(&folder)
        .args(["-s", &format!("-j{jobs}")])
        .stdout(Stdio::null());
    Running::start(command, &machine.file("programs.build.stderr"))
}
