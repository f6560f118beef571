//! `onbeat attach`: keeps running processes on the beat until they end, or until told to stop.

use std::process::ExitCode;

use anyhow::Context;
use onbeat_control::Next;

use super::keep::PreparedRun;
use super::served;
use crate::cli::{AttachArgs, KeepOptions};
use crate::live_view::LiveView;
use onbeat_command::signals::Signals;

pub(crate) fn run(args: &AttachArgs) -> anyhow::Result<ExitCode> {
    if served::is_meant(&args.service)? {
        return served::attach(args);
    }
    start(&args.pids, &args.keep, None)
}

/// The same; with a live view, until the user has seen enough.
pub(super) fn start(
    pids: &[u32],
    keep: &KeepOptions,
    view: Option<LiveView>,
) -> anyhow::Result<ExitCode> {
    let signals = Signals::block().context("cannot listen for signals")?;
    let mut keeper = PreparedRun::new(keep, view)?.hear(true)?;
    for &pid in pids.iter().chain(&keep.also) {
        keeper.track(pid)?;
    }
    keeper.keep(|| Ok(()), |()| attend(&signals))?;
    Ok(ExitCode::SUCCESS)
}

/// Being told to stop is how this command ends: no failure.
pub(super) fn attend(signals: &Signals) -> Next {
    match signals.next_that_ends() {
        Some(_) => Next::Stop,
        None => Next::Continue,
    }
}
