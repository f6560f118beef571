//! `onbeat reserve`: a program under a reservation set by hand.

use std::process::ExitCode;

use anyhow::Context;
use onbeat_act::restore::StateFile;
use onbeat_act::{DeadlineActuator, Options, task};
use onbeat_model::Actuator;

use crate::child::{Child, Gated, Status};
use crate::cli::ReserveArgs;
use crate::signals::Signals;

/// Reserves, starts the program, and waits for its end.
pub(crate) fn run(args: &ReserveArgs) -> anyhow::Result<ExitCode> {
    let reservation = args.reservation()?;
    let signals = Signals::block().context("cannot listen for signals")?;
    let directory = args.state.path()?;
    let state_file = StateFile::create(&directory)
        .with_context(|| format!("cannot write to {}", directory.display()))?;
    let options = Options {
        reclaim: args.reclaim,
    };
    let mut actuator = DeadlineActuator::new(state_file, options);

    let gated = Gated::fork(&args.command).context("cannot start a process")?;
    let task = task::identify(gated.pid()).context("the new process is gone")?;
    actuator
        .reserve(task, reservation)
        .with_context(|| format!("cannot reserve {reservation}"))?;
    let code = match gated.open() {
        Ok(mut child) => wait(&mut child, &signals).code(),
        Err(failure) => {
            eprintln!("onbeat: {failure}");
            failure.code()
        }
    };
    actuator.ended(task);
    Ok(code)
}

/// Waits for the program's end; signals to onbeat go on to it.
fn wait(child: &mut Child, signals: &Signals) -> Status {
    loop {
        if let Some(status) = child.ended() {
            return status;
        }
        signals.wait();
        while let Some(signal) = signals.next() {
            if signal.number != libc::SIGCHLD && !signal.from_terminal {
                child.signal(signal.number);
            }
        }
    }
}
