//! Starts the tracer that a command hears programs by, and says so where it is not the best.

use std::io;
use std::path::Path;

use anyhow::Context;
use onbeat_sense::bpf::Parser;
use onbeat_sense::tracer::{
    self, Limitation, StartedTracer, Tracer, TracerError, TracerKind, Wants,
};

/// The parser of programs' files: for root a process without rights, because the files may be
/// another user's. To be called before this process has a second thread.
///
/// # Errors
/// If that process cannot be started.
pub(crate) fn parser(start: fn() -> io::Result<Parser>) -> anyhow::Result<Parser> {
    // SAFETY: takes nothing and always succeeds.
    if unsafe { libc::geteuid() } != 0 {
        return Ok(Parser::here());
    }
    start().context("cannot start the process that parses programs' files")
}

/// Starts the first of `kinds` that works. Unless `quiet`, says why it is not a better one, where
/// none was chosen.
pub(crate) fn start(
    kinds: &[TracerKind],
    wants: &Wants,
    parser: &Parser,
    quiet: bool,
) -> Result<Tracer, TracerError> {
    let StartedTracer { tracer, instead_of } = tracer::start(kinds, wants, parser)?;
    if let Some((better, why)) = instead_of.filter(|_| !quiet) {
        let taken = tracer.kind();
        eprintln!("onbeat: using the {taken} tracer because {better} does not work here: {why}");
    }
    Ok(tracer)
}

/// Prepares for the process `pid`, which is about to execute `program`; says what cannot be heard
/// of it.
pub(crate) fn expect(tracer: &mut Tracer, pid: u32, program: &Path) {
    if let Some(why) = Limitation::of(tracer.kind(), program) {
        eprintln!("onbeat: {} {why}", program.display());
    }
    tracer.expect(pid, program);
}
