//! The first line of a recording: on what it was made.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What the first line says it begins.
pub const FORMAT: &str = "onbeat-recording";

/// The version of the format that is written here.
pub const VERSION: u32 = 1;

/// The kernel, the machine, and what was recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Facts {
    /// [`FORMAT`].
    pub format: String,
    /// The version of the format.
    pub version: u32,
    /// The version of onbeat that wrote it.
    #[serde(default)]
    pub onbeat: String,
    /// The kernel's release, as `uname -r` says it.
    #[serde(default)]
    pub kernel: String,
    /// The machine's architecture, as `uname -m` says it.
    #[serde(default)]
    pub machine: String,
    /// How many CPUs are online.
    #[serde(default)]
    pub cpus: u32,
    /// The clock of the events.
    #[serde(default)]
    pub clock: String,
    /// The kernel's `sched_*` settings and their values, by name.
    #[serde(default)]
    pub sysctls: BTreeMap<String, String>,
    /// The command that was recorded; empty if running tasks were.
    #[serde(default)]
    pub command: Vec<String>,
    /// When the recording began, in seconds since 1970 (UTC).
    #[serde(default)]
    pub started_unix_s: u64,
}
