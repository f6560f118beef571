//! `onbeat restore`: puts back what an onbeat that was killed has left changed.

use std::io::{self, Write};
use std::process::ExitCode;

use anyhow::Context;
use onbeat_act::restore::{self, Skipped};
use onbeat_sense::tracefs;

use crate::cli::RestoreArgs;
use onbeat_command::guard;

pub(crate) fn run(args: &RestoreArgs) -> anyhow::Result<ExitCode> {
    let directory = args.state.path()?;
    if args.guard {
        guard::wait(&directory).context("cannot wait for the onbeat that is guarded")?;
    }
    let restored = if args.guard {
        restore::restore_but_given(&directory)
    } else {
        restore::restore(&directory, args.force)
    };
    let report = restored.with_context(|| format!("cannot read {}", directory.display()))?;
    let mut output = io::stdout().lock();
    for (task, outcome) in &report.tasks {
        if outcome.failed() {
            eprintln!("onbeat: thread {task}: {outcome}; then run 'onbeat restore' again");
        } else if !args.quiet {
            writeln!(output, "thread {task}: {outcome}")?;
        }
    }
    for (number, outcome) in &report.domains {
        if outcome.failed() {
            eprintln!("onbeat: speed of CPU {number}: {outcome}; then run 'onbeat restore' again");
        } else if !args.quiet {
            writeln!(
                output,
                "speed of CPU {number} and the CPUs of its cpufreq policy: {outcome}"
            )?;
        }
    }
    let buffers = tracefs::remove_leftovers();
    let mut is_complete = report.is_complete();
    for (name, removed) in &buffers {
        if let Err(error) = removed {
            is_complete = false;
            eprintln!(
                "onbeat: trace buffer {name}: not removed: {error}; then run 'onbeat restore' again"
            );
        } else if !args.quiet {
            writeln!(output, "trace buffer {name}: removed")?;
        }
    }
    // A guard beside others is no reason to end theirs.
    let is_others = |why: &Skipped| matches!(why, Skipped::OwnerLives(_) | Skipped::Given);
    let is_meant = |reason: &Skipped| !args.guard || !is_others(reason);
    for (path, reason) in report.skipped.iter().filter(|(_, why)| is_meant(why)) {
        eprintln!("onbeat: {}: skipped: {reason}", path.display());
    }
    if report.damaged_lines > 0 {
        eprintln!(
            "onbeat: {} damaged lines in {} could not be read: the threads in them are not restored; see 'chrt -p'",
            report.damaged_lines,
            directory.display()
        );
    }
    let told = report.tasks.len() + report.domains.len() + report.skipped.len() + buffers.len();
    if !args.quiet && told == 0 {
        writeln!(output, "nothing to put back")?;
    }
    Ok(ExitCode::from(u8::from(!is_complete)))
}
