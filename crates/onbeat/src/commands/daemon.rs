//! `onbeat daemon`: the system service.

use std::process::ExitCode;

use anyhow::Context;
use onbeat_daemon::{ServiceOptions, Signal, Sources};

use crate::cli::DaemonArgs;
use onbeat_command::guard;
use onbeat_command::signals::Signals;

pub(crate) fn run(args: &DaemonArgs) -> anyhow::Result<ExitCode> {
    let state = args.state.path()?;
    let sources = Sources::new(args.config.clone(), args.rules.clone(), &state);
    if args.check {
        onbeat_daemon::read(&sources)?;
        println!("the configuration has no mistake");
        return Ok(ExitCode::SUCCESS);
    }
    let options = ServiceOptions {
        sources,
        state,
        metrics: args.metrics.clone(),
        has_bus: !args.no_bus,
        hand_over: args.hand_over,
    };
    guard::start(guard::THIS.as_ref(), &options.state);
    let signals = Signals::block().context("cannot listen for signals")?;
    onbeat_daemon::run(&options, || next(&signals))?;
    Ok(ExitCode::SUCCESS)
}

fn next(signals: &Signals) -> Option<Signal> {
    loop {
        match signals.next()?.number {
            libc::SIGHUP => return Some(Signal::Reload),
            libc::SIGINT | libc::SIGTERM | libc::SIGQUIT => return Some(Signal::End),
            _ => {}
        }
    }
}
