//! `onbeat run`: starts a program and keeps it on the beat until it ends.

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::Context;
use onbeat_control::Next;

use super::keep::Keeper;
use super::served;
use crate::child::{Child, Gated, Status};
use crate::cli::{KeepOptions, RunArgs};
use crate::live_view::LiveView;
use crate::signals::{Signal, Signals};

/// Starts, tracks, keeps; gives the program's exit status.
pub(crate) fn run(args: &RunArgs) -> anyhow::Result<ExitCode> {
    if served::is_meant(&args.service, args.keep.quiet)? {
        return served::run(args);
    }
    start(&args.command, &args.keep, None)
}

/// The same; with a live view, the program is silent, and ends when the user has seen enough.
pub(super) fn start(
    command: &[OsString],
    keep: &KeepOptions,
    view: Option<LiveView>,
) -> anyhow::Result<ExitCode> {
    let signals = Signals::block().context("cannot listen for signals")?;
    let is_watched = view.is_some();
    let mut keeper = Keeper::new(keep, !keep.also.is_empty())?.shown_to(view);
    let preparation = keeper.preparation();
    let gated = if is_watched {
        Gated::fork_in_silence(command, preparation)
    } else {
        Gated::prepared(command, preparation)
    };
    let gated = gated.context("cannot start a process")?;
    keeper.track(gated.pid())?;
    if let Some(program) = gated.executable() {
        keeper.expect(gated.pid(), &program);
    }
    for &pid in &keep.also {
        keeper.track(pid)?;
    }
    let begin = || Ok(gated.open().map(Program::new));
    let program = keeper.keep(begin, |program| match program {
        Ok(program) => program.attend(&signals),
        Err(_) => Next::Stop,
    })?;
    Ok(match program {
        Ok(program) if is_watched => program.end().code(),
        Ok(program) => program.code(),
        Err(failure) => {
            eprintln!("onbeat: {failure}");
            failure.code()
        }
    })
}

/// The program that is run, and how it is to end.
pub(super) struct Program {
    child: Child,
    interrupts: u32,
    ended: Option<Status>,
}

impl Program {
    pub(super) fn new(child: Child) -> Self {
        Self {
            child,
            interrupts: 0,
            ended: None,
        }
    }

    /// Passes signals on, and stops one turn after the program's end, when its last events are in.
    pub(super) fn attend(&mut self, signals: &Signals) -> Next {
        if self.ended.is_some() {
            return Next::Stop;
        }
        while let Some(signal) = signals.next() {
            if self.hear(signal) == Next::Stop {
                return Next::Stop;
            }
        }
        self.ended = self.child.ended();
        Next::Continue
    }

    /// A signal to onbeat is meant for the program. From the terminal the program has it already;
    /// if it does not end by it, a second one ends onbeat alone.
    fn hear(&mut self, signal: Signal) -> Next {
        match signal.number {
            libc::SIGCHLD => return Next::Continue,
            libc::SIGINT | libc::SIGTERM | libc::SIGQUIT => self.interrupts += 1,
            _ => {}
        }
        if !signal.from_terminal {
            self.child.signal(signal.number);
        }
        if self.interrupts < 2 {
            return Next::Continue;
        }
        self.ended = self.child.ended();
        if self.ended.is_none() {
            let pid = self.child.pid();
            if self.child.outlives_us() {
                eprintln!("onbeat: interrupted twice: process {pid} is given back and runs on");
            } else {
                eprintln!("onbeat: interrupted twice: process {pid} ends with its tracer");
            }
        }
        Next::Stop
    }

    /// Ends it, unless it has ended.
    fn end(mut self) -> Self {
        self.ended = self.ended.or_else(|| {
            self.child.signal(libc::SIGTERM);
            self.child.wait()
        });
        self
    }

    /// Waits for its end, which is near.
    pub(super) fn wait(&mut self) {
        self.ended = self.child.wait();
    }

    /// The exit code of onbeat.
    pub(super) fn code(mut self) -> ExitCode {
        self.ended
            .or_else(|| self.child.ended())
            .unwrap_or(Status::Killed(libc::SIGINT as u8))
            .code()
    }
}
