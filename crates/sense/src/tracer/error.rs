//! The errors of all tracers, each with advice.

use std::fmt;

use super::TracerKind;
use crate::{bpf, perf, preload, ptrace, tracefs};

#[derive(Debug, thiserror::Error)]
pub enum TracerError {
    #[error("--tracer {kind} {what}: {remedy}")]
    Lacks {
        kind: TracerKind,
        what: &'static str,
        remedy: &'static str,
    },
    #[error("no tracer works here:{}", Reasons(.reasons))]
    None {
        reasons: Vec<(TracerKind, TracerError)>,
    },
    #[error(transparent)]
    Bpf(#[from] bpf::BpfError),
    #[error(transparent)]
    Tracefs(#[from] tracefs::TracefsError),
    #[error(transparent)]
    Perf(#[from] perf::PerfError),
    #[error(transparent)]
    Ptrace(#[from] ptrace::PtraceError),
    #[error(transparent)]
    Preload(#[from] preload::PreloadError),
}

/// One to a line, unless it is but one.
struct Reasons<'a>(&'a [(TracerKind, TracerError)]);

impl fmt::Display for Reasons<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            [(_, only)] => write!(f, " {only}"),
            all => all
                .iter()
                .try_for_each(|(kind, error)| write!(f, "\n  {kind}: {error}")),
        }
    }
}
