//! The flag that says where it is noted what has to be put back.

use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use onbeat_act::restore::StateFile;

/// Where it is noted what has to be put back.
#[derive(Debug, Args)]
pub(crate) struct StateDirectory {
    /// Where it is noted what has to be put back [default: /run/onbeat for root, else
    /// $XDG_RUNTIME_DIR/onbeat]
    #[arg(
        long = "state-dir",
        value_name = "DIR",
        env = "ONBEAT_STATE_DIR",
        hide_env_values = true
    )]
    given: Option<PathBuf>,
}

impl StateDirectory {
    /// The folder.
    pub(crate) fn path(&self) -> anyhow::Result<PathBuf> {
        self.given
            .clone()
            .or_else(StateFile::default_directory)
            .context("no folder to note in what has to be put back: name one with --state-dir")
    }
}
