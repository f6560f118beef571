//! How a command ends, and what it says then.

use std::io;
use std::process::ExitCode;

use crate::child::CannotExecute;

pub const FAILURE: u8 = 1;
/// It failed before or beside the program it was to run, whose own statuses must stay apart: as
/// `env` and `timeout` have it.
pub const FAILURE_BESIDE_PROGRAM: u8 = 125;

/// The exit code of a command; one that failed gets this, and says why after the program's name.
pub fn of(result: anyhow::Result<ExitCode>, program: &str, failure: u8) -> ExitCode {
    result.unwrap_or_else(|error| {
        if is_closed_pipe(&error) {
            return ExitCode::SUCCESS;
        }
        eprintln!("{program}: {}", message(&error));
        let unexecuted = error.downcast_ref::<CannotExecute>();
        ExitCode::from(unexecuted.map_or(failure, CannotExecute::code))
    })
}

/// The error and its causes, without those that the messages before them tell already.
fn message(error: &anyhow::Error) -> String {
    error.chain().fold(String::new(), |told, cause| {
        let cause = cause.to_string();
        if told.is_empty() {
            cause
        } else if told.contains(&cause) {
            told
        } else {
            format!("{told}: {cause}")
        }
    })
}

/// The reader of our output has had enough: no failure.
fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        cause
            .downcast_ref::<io::Error>()
            .is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::Context;

    #[test]
    fn no_cause_is_told_twice() {
        let error = io::Error::other("the disk is full");
        let told: anyhow::Result<()> =
            Err(anyhow::Error::from(error).context("cannot write x: the disk is full"))
                .context("recording ended");
        assert_eq!(
            message(&told.unwrap_err()),
            "recording ended: cannot write x: the disk is full"
        );
    }

    #[test]
    fn a_closed_pipe_is_known_behind_any_context() {
        let closed = anyhow::Error::from(io::Error::from(io::ErrorKind::BrokenPipe));
        assert!(is_closed_pipe(&closed.context("printing")));
        assert!(!is_closed_pipe(&anyhow::anyhow!("broken pipe")));
    }
}
