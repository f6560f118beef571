//! `run`, `attach` and `reserve` for users who may not change how tasks are scheduled: the system
//! service does it for them, within their quota and by its own settings.

use std::ops::ControlFlow;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, bail};
use onbeat_act::{may_reserve, task};
use onbeat_control::Next;
use onbeat_model::TaskId;

use super::run::{ChildProgram, tell_nice};
use crate::cli::{AttachArgs, ReserveArgs, RunArgs, ServiceOption};
use crate::service::{ClientRequest, ClientSession};
use onbeat_command::child::{Gated, ProgramEnd};
use onbeat_command::signals::Signals;

/// How long it is waited for a signal between two looks.
const PAUSE: Duration = Duration::from_millis(200);
/// The flags that may stand beside it: the rest is for the service to decide.
const WHOM_AND_WHAT: [&str; 9] = [
    "--service",
    "--also",
    "--children",
    "--quiet",
    "--report",
    "--log",
    "--runtime",
    "--period",
    "--deadline",
];

/// Whether the service is to do it: it is wanted, or this process may not.
pub(super) fn is_meant(option: &ServiceOption) -> anyhow::Result<bool> {
    if option.service {
        refuse_others(option)?;
        return Ok(true);
    }
    // A dry run needs no service.
    if may_reserve() || option.given.iter().any(|flag| flag == "--dry-run") {
        return Ok(false);
    }
    refuse_others(option)?;
    Ok(true)
}

fn refuse_others(option: &ServiceOption) -> anyhow::Result<()> {
    let others = option.given.iter().map(String::as_str);
    let others: Vec<&str> = others.filter(|f| !WHOM_AND_WHAT.contains(f)).collect();
    let why = match others.as_slice() {
        [] => return Ok(()),
        ["--perfetto"] => "shows only jobs and decisions to its users, not each burst",
        ["--cap"] => {
            "limits you by your quota ([quota] in /etc/onbeat/onbeat.toml), for all your programs together"
        }
        _ => "serves all users, by the settings in /etc/onbeat/onbeat.toml",
    };
    bail!(
        "without sudo the service acts, which {why}: leave out {}, or use sudo",
        others.join(" and ")
    )
}

pub(super) fn run(args: &RunArgs) -> anyhow::Result<ExitCode> {
    let signals = Signals::block().context("cannot listen for signals")?;
    let keep = &args.keep;
    tell_nice(keep);
    let mut held = ClientSession::new(Some(keep))?;
    let gated = Gated::fork(&args.command).context("cannot start a process")?;
    for pid in std::iter::once(gated.pid()).chain(keep.also.iter().copied()) {
        if let ControlFlow::Break(signal) = track(&mut held, pid, keep.children, &signals)? {
            return Ok(interrupted(signal));
        }
    }
    let code = start(gated, &signals, &mut held)?;
    // What was run has its own status, whatever became of the files.
    if let Err(error) = held.close() {
        eprintln!("onbeat: {error:#}");
    }
    Ok(code)
}

pub(super) fn attach(args: &AttachArgs) -> anyhow::Result<ExitCode> {
    let signals = Signals::block().context("cannot listen for signals")?;
    let keep = &args.keep;
    let mut held = ClientSession::new(Some(keep))?;
    for &pid in args.pids.iter().chain(&keep.also) {
        if let ControlFlow::Break(signal) = track(&mut held, pid, keep.children, &signals)? {
            return Ok(interrupted(signal));
        }
    }
    while held.is_any_alive() && super::attach::attend(&signals) == Next::Continue {
        held.attend(&signals);
        signals.wait_at_most(PAUSE);
    }
    held.close()?;
    Ok(ExitCode::SUCCESS)
}

pub(super) fn reserve(args: &ReserveArgs) -> anyhow::Result<ExitCode> {
    let signals = Signals::block().context("cannot listen for signals")?;
    let reservation = args.reservation()?;
    let mut held = ClientSession::new(None)?;
    let gated = Gated::fork(&args.command).context("cannot start a process")?;
    let thread = identify(gated.pid())?;
    let wish = ClientRequest::Reserve {
        thread,
        reservation,
    };
    let asked = held.ask(wish, &signals);
    let asked = asked.with_context(|| format!("cannot reserve {reservation}"))?;
    if let ControlFlow::Break(signal) = asked {
        return Ok(interrupted(signal));
    }
    start(gated, &signals, &mut held)
}

fn identify(pid: u32) -> anyhow::Result<TaskId> {
    task::identify(pid).with_context(|| format!("cannot track process {pid}"))
}

fn track(
    held: &mut ClientSession,
    pid: u32,
    children: bool,
    signals: &Signals,
) -> anyhow::Result<ControlFlow<i32>> {
    if let Some(why) = task::off_limits(pid) {
        bail!(why);
    }
    let process = identify(pid)?;
    held.ask(ClientRequest::Track { process, children }, signals)
        .with_context(|| format!("cannot track process {pid}"))
}

/// A signal came before the service had answered: as a program ends that it kills.
fn interrupted(signal: i32) -> ExitCode {
    eprintln!(
        "onbeat: interrupted before the service answered: nothing was started, and nothing is reserved"
    );
    ProgramEnd::Killed(u8::try_from(signal).unwrap_or(u8::MAX)).code()
}

fn start(gated: Gated, signals: &Signals, held: &mut ClientSession) -> anyhow::Result<ExitCode> {
    let mut program = ChildProgram::new(gated.open()?);
    while program.attend(signals) == Next::Continue {
        held.attend(signals);
        signals.wait_at_most(PAUSE);
    }
    Ok(program.code())
}
