//! `onbeat run`: starts a program and keeps it on the beat until it ends.

use std::ffi::OsString;
use std::process::{self, ExitCode};

use anyhow::Context;
use onbeat_act::attributes::Attributes;
use onbeat_control::Next;
use onbeat_sense::identity;
use onbeat_sense::preparation::Preparation;

use super::keep::PreparedRun;
use super::served;
use crate::cli::{KeepOptions, RunArgs};
use crate::live_view::LiveView;
use onbeat_command::child::{self, Child, Gated, ProgramEnd};
use onbeat_command::signals::{ReceivedSignal, Signals};

pub(crate) fn run(args: &RunArgs) -> anyhow::Result<ExitCode> {
    if served::is_meant(&args.service)? {
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
    tell_nice(keep);
    let is_watched = view.is_some();
    let fork = |preparation| {
        let gated = if is_watched {
            Gated::fork_in_silence(command, preparation)
        } else {
            Gated::prepared(command, preparation)
        };
        gated.context("cannot start a process")
    };
    let mut prepared = PreparedRun::new(keep, view)?;
    let program = match begin_at_once(&mut prepared, keep, fork)? {
        Some(begun) => take_over(prepared, begun, &signals),
        None => start_tracked(prepared, keep, fork, &signals),
    }?;
    Ok(if is_watched {
        program.end().code()
    } else {
        program.code()
    })
}

/// Says that the program inherits a nice value with which onbeat leaves it alone.
pub(super) fn tell_nice(keep: &KeepOptions) {
    let own = Attributes::get(process::id()).ok();
    if let Some(nice @ 1..) = own.and_then(|own| own.nice()).filter(|_| !keep.quiet) {
        eprintln!(
            "onbeat: the program begins with the nice value {nice}, and onbeat leaves threads alone \
             that have one above 0: start onbeat without it"
        );
    }
}

struct Begun {
    program: ChildProgram,
    /// If its children are to be followed.
    orphans: Option<Orphans>,
}

/// Has the program begin under protection, while its tracer is not loaded yet; none if it has to
/// wait for the tracer.
fn begin_at_once(
    prepared: &mut PreparedRun<'_>,
    keep: &KeepOptions,
    fork: impl FnOnce(Preparation) -> anyhow::Result<Gated>,
) -> anyhow::Result<Option<Begun>> {
    if !prepared.may_protect() {
        return Ok(None);
    }
    let gated = fork(Preparation::default())?;
    if !prepared.protect(gated.pid())? {
        gated.abandon();
        return Ok(None);
    }
    let orphans = keep.children.then(Orphans::adopt);
    Ok(Some(Begun {
        program: ChildProgram::new(gated.open()?),
        orphans,
    }))
}

/// Loads the tracer beside a program that has begun, takes it over as it is then, and keeps it.
fn take_over(
    prepared: PreparedRun<'_>,
    begun: Begun,
    signals: &Signals,
) -> anyhow::Result<ChildProgram> {
    let Begun {
        mut program,
        orphans,
    } = begun;
    let heard = prepared.hear(true).and_then(|mut keeper| {
        let adopted = || orphans.as_ref().map_or(Vec::new(), Orphans::adopted);
        keeper.track_begun(program.child.pid(), adopted)?;
        Ok(keeper)
    });
    program.adopted = orphans.map_or(Vec::new(), Orphans::end);
    match heard {
        Ok(keeper) => keeper.keep(|| Ok(program), |program| program.attend(signals)),
        Err(error) => {
            program.child.signal(libc::SIGKILL);
            program.child.wait();
            Err(error)
        }
    }
}

/// Has the program begin once it is tracked, and keeps it.
fn start_tracked(
    prepared: PreparedRun<'_>,
    keep: &KeepOptions,
    fork: impl FnOnce(Preparation) -> anyhow::Result<Gated>,
    signals: &Signals,
) -> anyhow::Result<ChildProgram> {
    let mut keeper = prepared.hear(!keep.also.is_empty())?;
    let gated = fork(keeper.preparation())?;
    keeper.track(gated.pid())?;
    if let Some(program) = gated.executable() {
        keeper.tell_limitation(&program);
    }
    for &pid in &keep.also {
        keeper.track(pid)?;
    }
    let begin = || Ok(ChildProgram::new(gated.open()?));
    keeper.keep(begin, |program| program.attend(signals))
}

pub(super) struct ChildProgram {
    child: Child,
    /// Processes whose parent ended before they were tracked, and that are ours since.
    adopted: Vec<u32>,
    interrupts: u32,
    ended: Option<ProgramEnd>,
}

/// Has the processes that the program starts become ours when their parents end, so that they are
/// found, and not the first process's.
struct Orphans {
    /// Our children from before.
    own: Vec<u32>,
    was_set: bool,
}

impl Orphans {
    fn adopt() -> Self {
        let mut was_set: libc::c_int = 0;
        // SAFETY: the first call writes to `was_set`; the second takes numbers.
        unsafe {
            libc::prctl(libc::PR_GET_CHILD_SUBREAPER, &raw mut was_set);
            libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1);
        }
        Self {
            own: identity::children(process::id()),
            was_set: was_set != 0,
        }
    }

    fn adopted(&self) -> Vec<u32> {
        let mut children = identity::children(process::id());
        children.retain(|child| !self.own.contains(child));
        children
    }

    /// Those that are ours by now stay so.
    fn end(self) -> Vec<u32> {
        if !self.was_set {
            // SAFETY: numbers only.
            unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 0) };
        }
        self.adopted()
    }
}

impl ChildProgram {
    pub(super) fn new(child: Child) -> Self {
        Self {
            child,
            adopted: Vec::new(),
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
        self.adopted.retain(|&pid| !child::has_ended(pid));
        Next::Continue
    }

    /// A signal to onbeat is meant for the program. From the terminal the program has it already;
    /// if it does not end by it, a second one ends onbeat alone.
    fn hear(&mut self, signal: ReceivedSignal) -> Next {
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
                eprintln!(
                    "onbeat: interrupted twice: onbeat ends, and process {pid} runs on with its former scheduling"
                );
            } else {
                eprintln!("onbeat: interrupted twice: process {pid} ends with its tracer");
            }
        }
        Next::Stop
    }

    fn end(mut self) -> Self {
        self.ended = self.ended.or_else(|| {
            self.child.signal(libc::SIGTERM);
            self.child.wait()
        });
        self
    }

    pub(super) fn wait(&mut self) {
        self.ended = self.child.wait();
    }

    pub(super) fn code(mut self) -> ExitCode {
        self.ended
            .or_else(|| self.child.ended())
            .unwrap_or(ProgramEnd::Killed(libc::SIGINT as u8))
            .code()
    }
}
