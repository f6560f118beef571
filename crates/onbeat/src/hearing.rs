//! Starts the tracer that a command hears programs by, and says so where it is not the best.

use onbeat_sense::tracer::{self, Error, Started, Tracer, Wants};

use crate::cli::TracingOptions;

/// By what `options` choose. Unless `quiet`, says why it is not a better one that nobody chose
/// against.
pub(crate) fn start(options: &TracingOptions, wants: &Wants, quiet: bool) -> Result<Tracer, Error> {
    let Started { tracer, instead_of } = tracer::start(options.choice(), wants)?;
    if let Some((better, why)) = instead_of.filter(|_| !quiet) {
        let taken = tracer.kind();
        eprintln!("onbeat: using the {taken} tracer because {better} does not work here: {why}");
    }
    Ok(tracer)
}
