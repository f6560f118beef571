//! The flag for the folder of the state file.

use std::env;
use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use onbeat_act::restore::StateFile;

#[derive(Debug, Args)]
pub struct StateDirectory {
    /// Folder for the former scheduling of each changed thread, which `restore` reads
    /// [default: /run/onbeat for root, else $XDG_RUNTIME_DIR/onbeat]
    #[arg(
        long = "state-dir",
        value_name = "DIR",
        env = VARIABLE,
        hide_env_values = true
    )]
    given: Option<PathBuf>,
}

impl StateDirectory {
    pub fn path(&self) -> anyhow::Result<PathBuf> {
        or_default(self.given.clone())
    }

    pub fn of_environment() -> anyhow::Result<PathBuf> {
        or_default(env::var_os(VARIABLE).map(PathBuf::from))
    }
}

const VARIABLE: &str = "ONBEAT_STATE_DIR";

fn or_default(given: Option<PathBuf>) -> anyhow::Result<PathBuf> {
    given.or_else(StateFile::default_directory).context(
        "without root's rights onbeat has no folder for the former scheduling of threads: use sudo, or name one with \
         --state-dir or ONBEAT_STATE_DIR",
    )
}
