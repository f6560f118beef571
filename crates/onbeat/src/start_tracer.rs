//! Starts the tracer that a command hears programs by, and says so where it is not the best.

use std::path::Path;

use onbeat_sense::tracer::{
    self, Limitation, StartedTracer, Tracer, TracerError, TracerKind, Wants,
};

/// Starts the first of `kinds` that works. Unless `quiet`, says why it is not a better one, where
/// none was chosen.
pub(crate) fn start(
    kinds: &[TracerKind],
    wants: &Wants,
    quiet: bool,
) -> Result<Tracer, TracerError> {
    let StartedTracer { tracer, instead_of } = tracer::start(kinds, wants)?;
    if let Some((better, why)) = instead_of.filter(|_| !quiet) {
        let taken = tracer.kind();
        eprintln!("onbeat: using the {taken} tracer because {better} does not work here: {why}");
    }
    Ok(tracer)
}

/// Says what the tracer cannot hear of `program`, which is about to be executed.
pub(crate) fn tell_limitation(tracer: &Tracer, program: &Path) {
    if let Some(why) = Limitation::of(tracer.kind(), program) {
        eprintln!("onbeat: {} {why}", program.display());
    }
}
