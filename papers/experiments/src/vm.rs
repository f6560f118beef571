//! The virtual machine an experiment runs in: a real kernel whose clock counts instructions, so
//! that neither a busy host nor a second run changes a figure.
//!
//! The guest runs a case like those of `tests/vm`: a shell script, `guest.sh` in the experiment's
//! folder, whose head names the programs it needs. The figures are made on the host, from the files
//! that it wrote to /results.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};

use crate::machine::{Machine, binary};
use crate::results::Ran;
use crate::steps::CHECKOUT;

/// Longer than any case may take by its own head.
const PATIENCE: Duration = Duration::from_secs(24 * 3600);

#[derive(Debug)]
pub(crate) struct Guest {
    script: PathBuf,
    name: String,
    cpus: usize,
    image: u64,
    arguments: Vec<OsString>,
}

#[derive(Debug)]
pub(crate) struct Ended {
    /// The folder with what it wrote to /results, and `serial.log`.
    pub(crate) folder: PathBuf,
    kernel: String,
    cpus: usize,
}

impl Guest {
    /// The guest of the experiment `name`: `experiments/NAME/guest.sh`.
    pub(crate) fn new(name: &str) -> Self {
        let script = Path::new(CHECKOUT).join("papers/experiments").join(name);
        Self {
            script: script.join("guest.sh"),
            name: name.to_owned(),
            cpus: 1,
            image: 0,
            arguments: Vec::new(),
        }
    }

    /// Boots it with this number of CPUs; with more than one, the script's head has to ask for
    /// virtual time.
    pub(crate) fn cpus(mut self, cpus: usize) -> Self {
        self.cpus = cpus;
        self.arguments
            .extend(["--cpus".into(), cpus.to_string().into()]);
        self
    }

    /// Boots another image than the one numbered 0, as it would be of programs built elsewhere.
    pub(crate) fn image(mut self, image: u64) -> Self {
        self.image = image;
        self.arguments
            .extend(["--image".into(), image.to_string().into()]);
        self
    }

    pub(crate) fn set(mut self, name: &str, value: impl std::fmt::Display) -> Self {
        let setting = format!("{name}={value}");
        self.arguments.extend(["--set".into(), setting.into()]);
        self
    }

    /// Puts one more program or file into it: what a script's head would name after `needs:`.
    pub(crate) fn need(mut self, word: impl Into<OsString>) -> Self {
        self.arguments.extend(["--need".into(), word.into()]);
        self
    }

    /// Boots it and waits for its end, with what it says shown meanwhile. The results are put into
    /// a folder of the experiment's name among the figures, in place of an earlier run's.
    ///
    /// An error if the script failed, or if the kernel panicked or warned.
    pub(crate) fn boot(&self, machine: &Machine) -> anyhow::Result<Ended> {
        let began = Instant::now();
        let mut command = Command::new(Path::new(CHECKOUT).join("tests/vm/run.sh"));
        let binary = binary()?;
        command
            .arg("--follow")
            .arg("--results")
            .arg(machine.file(""))
            .args(&self.arguments)
            .arg(&self.script)
            .env("ONBEAT_VM_PATH", binary.parent().unwrap_or(Path::new(".")));
        let messages = machine.file(&format!("{}.stderr", self.name));
        let succeeded = machine.run(command, &messages, PATIENCE)?;
        let folder = match self.image {
            0 => self.name.clone(),
            image => format!("{}-image-{image}", self.name),
        };
        let folder = machine.file(&folder);
        if !succeeded {
            let told = fs::read_to_string(&messages).unwrap_or_default();
            bail!(
                "the virtual machine failed (what it said is above, and in {}): {}",
                folder.join("serial.log").display(),
                told.trim()
            );
        }
        println!("the guest took {:.0} s", began.elapsed().as_secs_f64());
        let serial = folder.join("serial.log");
        let text = fs::read_to_string(&serial)
            .with_context(|| format!("the guest left no {}", serial.display()))?;
        Ok(Ended {
            kernel: kernel_of(&text).to_owned(),
            cpus: self.cpus,
            folder,
        })
    }
}

impl Ended {
    pub(crate) fn ran(&self, machine: &Machine) -> Ran {
        let cpus = match self.cpus {
            1 => "one CPU".to_owned(),
            cpus => format!("{cpus} CPUs that take turns"),
        };
        Ran {
            how: format!("virtual time, {cpus}, 2 ns an instruction"),
            kernel: self.kernel.clone(),
            ..Ran::live(machine)
        }
    }
}

/// The release that the guest's init says first, among the kernel's own lines.
fn kernel_of(serial: &str) -> &str {
    let release = |line: &&str| line.starts_with(|c: char| c.is_ascii_digit());
    serial.lines().find(release).unwrap_or("unknown")
}
