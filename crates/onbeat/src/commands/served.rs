//! `run`, `attach` and `reserve` for users who may not change how tasks are scheduled: the system
//! service does it for them, within their quota and by its own settings.

use std::ops::ControlFlow;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, bail};
use onbeat_act::{may_reserve, task};
use onbeat_control::Next;
use onbeat_model::{Span, TaskId};
use onbeat_top::{Align, ThreadSnapshot};

use super::run::ChildProgram;
use crate::cli::{AttachArgs, ReserveArgs, RunArgs, ServiceOption};
use crate::service::{ClientRequest, ClientSession};
use onbeat_command::child::{Gated, ProgramEnd};
use onbeat_command::signals::Signals;
use onbeat_command::table::TextTable;

/// How long it is waited for a signal between two looks.
const PAUSE: Duration = Duration::from_millis(200);
/// The flags that may stand beside it: the rest is for the service to decide.
const WHOM_AND_WHAT: [&str; 7] = [
    "--service",
    "--also",
    "--children",
    "--quiet",
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
    refuse_others(option).context("without sudo the system service acts")?;
    Ok(true)
}

fn refuse_others(option: &ServiceOption) -> anyhow::Result<()> {
    let others = option.given.iter().map(String::as_str);
    let others: Vec<&str> = others.filter(|f| !WHOM_AND_WHAT.contains(f)).collect();
    if !others.is_empty() {
        bail!(
            "the service does not take {}: leave that out, or use sudo; its settings are in onbeat.toml",
            others.join(" and ")
        );
    }
    Ok(())
}

/// Starts a program, tracked from its first instruction on; gives its exit status.
pub(super) fn run(args: &RunArgs) -> anyhow::Result<ExitCode> {
    let signals = Signals::block().context("cannot listen for signals")?;
    let keep = &args.keep;
    let mut held = ClientSession::nothing_yet(keep.quiet)?;
    let gated = Gated::fork(&args.command).context("cannot start a process")?;
    for pid in std::iter::once(gated.pid()).chain(keep.also.iter().copied()) {
        if let ControlFlow::Break(signal) = track(&mut held, pid, keep.children, &signals)? {
            return Ok(interrupted(signal));
        }
    }
    let code = start(gated, &signals, &mut held);
    close(&held, keep.quiet);
    Ok(code)
}

/// Until all processes have ended, or it is told to stop.
pub(super) fn attach(args: &AttachArgs) -> anyhow::Result<ExitCode> {
    let signals = Signals::block().context("cannot listen for signals")?;
    let keep = &args.keep;
    let mut held = ClientSession::nothing_yet(keep.quiet)?;
    for &pid in args.pids.iter().chain(&keep.also) {
        if let ControlFlow::Break(signal) = track(&mut held, pid, keep.children, &signals)? {
            return Ok(interrupted(signal));
        }
    }
    while held.is_any_alive() && super::attach::attend(&signals) == Next::Continue {
        held.attend(&signals);
        signals.wait_at_most(PAUSE);
    }
    close(&held, keep.quiet);
    Ok(ExitCode::SUCCESS)
}

/// Starts a program with a reservation for its first thread; gives its exit status.
pub(super) fn reserve(args: &ReserveArgs) -> anyhow::Result<ExitCode> {
    let signals = Signals::block().context("cannot listen for signals")?;
    let reservation = args.reservation()?;
    let mut held = ClientSession::nothing_yet(false)?;
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
    Ok(start(gated, &signals, &mut held))
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

fn start(gated: Gated, signals: &Signals, held: &mut ClientSession) -> ExitCode {
    let child = match gated.open() {
        Ok(child) => child,
        Err(failure) => return failure.tell(),
    };
    let mut program = ChildProgram::new(child);
    while program.attend(signals) == Next::Continue {
        held.attend(signals);
        signals.wait_at_most(PAUSE);
    }
    program.code()
}

/// How things stood when they were last looked at: each application, and below it its threads with
/// a period.
fn close(held: &ClientSession, quiet: bool) {
    if quiet {
        return;
    }
    let columns = [
        ("application, thread", Align::Left),
        ("id", Align::Right),
        ("period", Align::Right),
        ("jobs", Align::Right),
        ("p50", Align::Right),
        ("p95", Align::Right),
        ("max", Align::Right),
        ("missed", Align::Right),
        ("used", Align::Right),
        ("reserved", Align::Right),
        ("", Align::Left),
    ];
    let mut table = TextTable::new(&columns);
    let mut is_empty = true;
    for application in held.applications() {
        is_empty = false;
        table.row([
            application.comm.to_text(),
            application.pid.to_string(),
            String::new(),
            application.jobs.to_string(),
            String::new(),
            String::new(),
            String::new(),
            application.missed.to_string(),
            application.bandwidth_used.to_string(),
            application.bandwidth_reserved.to_string(),
            application.served(),
        ]);
        for seen in held.threads_of(application.pid) {
            table.row(thread_row(seen, held.response_times(seen.task.id)));
        }
    }
    if is_empty {
        eprintln!("no thread showed a rhythm.");
    } else {
        eprint!("{table}");
    }
}

fn thread_row(seen: &ThreadSnapshot, times: [Option<Span>; 3]) -> [String; 11] {
    let [p50, p95, max] = times.map(|time| time.map_or("-".to_owned(), |time| time.to_string()));
    let held = seen
        .held
        .map_or("-".to_owned(), |h| h.bandwidth().to_string());
    let remark = match (&seen.path, seen.held) {
        (path, _) if !path.is_empty() => path,
        (_, None) => &seen.why,
        _ => "",
    };
    [
        format!("  {}", seen.task.comm.to_text()),
        seen.task.id.to_string(),
        seen.period.map_or("-".to_owned(), |p| p.to_string()),
        seen.jobs.to_string(),
        p50,
        p95,
        max,
        seen.missed.to_string(),
        String::new(),
        held,
        remark.to_owned(),
    ]
}
