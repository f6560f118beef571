//! The first line of a recording: on what it was made.

use std::fs;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

/// How much of the command is kept, in bytes: its line must stay within `LONGEST_LINE`.
const COMMAND_KEPT: usize = 64 << 10;

pub const FORMAT: &str = "onbeat-recording";

/// The version of the format that is written here.
pub const VERSION: u32 = 1;

/// The kernel, the machine, and what was recorded. A value that is not known is empty or zero.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Facts {
    pub format: String,
    pub version: u32,
    #[serde(default)]
    pub onbeat: String,
    /// The kernel's release, as `uname -r` says it.
    #[serde(default)]
    pub kernel: String,
    #[serde(default)]
    pub cpus: u32,
    #[serde(default)]
    pub clock: String,
    /// The command that was recorded; empty if running tasks were.
    #[serde(default)]
    pub command: Vec<String>,
    #[serde(default)]
    pub started_unix_s: u64,
}

impl Facts {
    /// The facts of this machine now, for a recording of `command`. A very long command is cut.
    pub fn gather(command: &[String]) -> Self {
        let mut room = COMMAND_KEPT;
        let command = command
            .iter()
            .take_while(|word| match room.checked_sub(word.len() + 1) {
                Some(rest) => {
                    room = rest;
                    true
                }
                None => false,
            })
            .cloned()
            .collect();
        Self {
            format: FORMAT.into(),
            version: VERSION,
            onbeat: env!("CARGO_PKG_VERSION").into(),
            kernel: text_of("/proc/sys/kernel/osrelease"),
            cpus: online_cpus(),
            clock: "monotonic".into(),
            command,
            started_unix_s: SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .map_or(0, |since| since.as_secs()),
        }
    }
}

fn text_of(path: &str) -> String {
    fs::read_to_string(path)
        .map(|text| text.trim().to_owned())
        .unwrap_or_default()
}

fn online_cpus() -> u32 {
    let is_cpu = |line: &&str| {
        line.strip_prefix("cpu")
            .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    let count = text_of("/proc/stat").lines().filter(is_cpu).count();
    u32::try_from(count).unwrap_or(u32::MAX)
}
