//! Which tracers there are, and what each can and cannot tell.

use std::fmt;

use onbeat_model::{Feature, Support};

use super::{Tracer, TracerError};
use crate::calls::Call;
use crate::{bpf, preload};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TracerKind {
    /// BPF programs on the scheduler's tracepoints.
    Bpf,
    /// System calls in which a thread can wait, by BPF: as the LFS++ paper's tracer had it before
    /// it heard wakeups.
    BpfSyscalls,
    Tracefs,
    /// Context switches of one's own threads, by perf events.
    Perf,
    /// Stops at the system calls that may wait, of programs that onbeat starts.
    Ptrace,
    /// A library in programs that onbeat starts.
    Preload,
}

/// The wishes to a tracer. Nothing by default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wants {
    /// CPU times of bursts, as the loop needs them.
    pub bursts: bool,
    pub wakeups: bool,
    pub running: bool,
    /// The tasks that tracked tasks wake; a tracer that cannot tell does all the same.
    pub partners: bool,
    /// These system calls, of a tracer that hears such; if there are none, all in which a thread
    /// can wait.
    pub calls: Vec<Call>,
}

impl Wants {
    pub(super) fn calls(&self) -> &[Call] {
        if self.calls.is_empty() {
            Call::all()
        } else {
            &self.calls
        }
    }
}

impl TracerKind {
    /// All, the best first.
    pub const ALL: [Self; 6] = [
        Self::Bpf,
        Self::Tracefs,
        Self::Perf,
        Self::Ptrace,
        Self::Preload,
        Self::BpfSyscalls,
    ];

    /// Those that `record` and `watch` try without a choice, in this order.
    pub const AUTO: [Self; 5] = [
        Self::Bpf,
        Self::Tracefs,
        Self::Perf,
        Self::Ptrace,
        Self::Preload,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Bpf => "bpf",
            Self::BpfSyscalls => "bpf-syscalls",
            Self::Tracefs => "tracefs",
            Self::Perf => "perf",
            Self::Ptrace => "ptrace",
            Self::Preload => "preload",
        }
    }

    /// Whether it works here, with this user's rights; found by trying it.
    pub fn probe(self) -> Feature {
        let (standing, detail) = match self {
            Self::Bpf => return bpf::probe_tracer(),
            Self::BpfSyscalls => (
                Support::Partial,
                "sees when system calls begin, not bursts: for comparison",
            ),
            Self::Tracefs => (
                Support::Partial,
                "sees wakeups and switches to a microsecond, but no exhausted budgets and no marks",
            ),
            Self::Perf => (
                Support::Partial,
                "sees your own programs without root, from when they run, not from when they are woken",
            ),
            Self::Ptrace => (
                Support::Full,
                "sees programs that onbeat starts, without privilege",
            ),
            Self::Preload => (
                Support::Full,
                "sees dynamically linked programs that onbeat starts, without privilege",
            ),
        };
        let tried = match self {
            Self::Preload => preload::probe().map_err(TracerError::from),
            _ => Tracer::new(self, &Wants::default()).map(drop),
        };
        let name = format!("tracer {self}");
        match tried {
            Ok(()) => Feature::new(&name, standing, detail, ""),
            Err(error) => Feature::new(&name, Support::None, &error.to_string(), ""),
        }
    }

    /// Fails if it never can do what is wanted.
    pub(super) fn suits(self, wants: &Wants) -> Result<(), TracerError> {
        let lacks = [
            (
                wants.bursts && self == Self::BpfSyscalls,
                "tells when a thread did something, not how long it ran",
                "choose --tracer bpf, tracefs or perf",
            ),
            (
                wants.wakeups && !matches!(self, Self::Bpf | Self::Tracefs),
                "does not hear wakeups",
                "leave out --wakeups, or choose --tracer bpf or tracefs",
            ),
            (
                !wants.calls.is_empty() && !matches!(self, Self::BpfSyscalls | Self::Ptrace),
                "sees no system calls",
                "leave out --calls, or choose --tracer bpf-syscalls or ptrace",
            ),
            (
                wants.running && matches!(self, Self::Ptrace | Self::Preload),
                "cannot reach a process that runs already",
                "let onbeat start the program (-- CMD), or choose --tracer bpf or tracefs",
            ),
        ];
        let kind = self;
        match lacks.into_iter().find(|(lacks, ..)| *lacks) {
            Some((_, what, remedy)) => Err(TracerError::Lacks { kind, what, remedy }),
            None => Ok(()),
        }
    }

    /// It works for an ordinary user, for his own programs.
    pub(super) const fn is_for_users(self) -> bool {
        matches!(self, Self::Perf | Self::Ptrace | Self::Preload)
    }
}

impl fmt::Display for TracerKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
