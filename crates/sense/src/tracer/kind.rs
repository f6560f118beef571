//! Which tracers there are, and what each can and cannot tell.

use std::fmt;

use onbeat_model::Feature;

use super::TracerError;
use crate::calls::Call;
use crate::{bpf, perf, preload, ptrace, tracefs};

/// A way to hear what tasks do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TracerKind {
    /// BPF programs on the scheduler's tracepoints.
    Bpf,
    /// System calls in which a thread can wait, by BPF: as the LFS++ paper's tracer had it before
    /// it heard wakeups.
    BpfSyscalls,
    /// The scheduler's events in tracefs.
    Tracefs,
    /// Context switches of one's own threads, by perf events.
    Perf,
    /// Stops at the system calls that may wait, of programs that onbeat starts.
    Ptrace,
    /// A library in programs that onbeat starts.
    Preload,
}

/// The abilities of a tracer. All tracers can do the rest (threads that come and go, names, ends).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Abilities {
    /// Tells bursts, with their CPU time; otherwise moments of no length.
    pub bursts: bool,
    /// Tells when a task became ready, and not only when it first ran.
    pub wakeups: bool,
    /// Tells at once when a reservation's budget runs out.
    pub exhausted: bool,
    /// Hears what programs say of their own work.
    pub marks: bool,
    /// Can track a process that runs already.
    pub running: bool,
    /// Works for an ordinary user, for his own programs.
    pub unprivileged: bool,
    /// Which system calls it hears can be chosen.
    pub calls: bool,
}

/// The wishes to a tracer. Nothing by default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wants {
    /// CPU times of bursts, as the loop needs them.
    pub bursts: bool,
    /// Each single wakeup.
    pub wakeups: bool,
    /// Processes that run already.
    pub running: bool,
    /// The tasks that tracked tasks wake; a tracer that cannot tell does all the same.
    pub partners: bool,
    /// These system calls, of a tracer that hears such; if there are none, all in which a thread
    /// can wait.
    pub calls: Vec<Call>,
}

impl Wants {
    /// The system calls to hear.
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

    /// Its name on the command line.
    #[must_use]
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

    /// Its abilities, wherever it works.
    #[must_use]
    pub const fn abilities(self) -> Abilities {
        Abilities {
            bursts: !matches!(self, Self::BpfSyscalls),
            wakeups: matches!(self, Self::Bpf | Self::Tracefs),
            exhausted: matches!(self, Self::Bpf | Self::BpfSyscalls),
            marks: matches!(self, Self::Bpf | Self::BpfSyscalls),
            running: !matches!(self, Self::Ptrace | Self::Preload),
            unprivileged: matches!(self, Self::Perf | Self::Ptrace | Self::Preload),
            calls: matches!(self, Self::BpfSyscalls | Self::Ptrace),
        }
    }

    /// Whether it works here, with this user's rights; found by trying it.
    #[must_use]
    pub fn probe(self) -> Feature {
        match self {
            Self::Bpf => bpf::probe_tracer(),
            Self::BpfSyscalls => bpf::probe_calls(),
            Self::Tracefs => tracefs::probe(),
            Self::Perf => perf::probe(),
            Self::Ptrace => ptrace::probe(),
            Self::Preload => preload::probe(),
        }
    }

    /// # Errors
    /// If it never can do what is wanted.
    pub(super) fn suits(self, wants: &Wants) -> Result<(), TracerError> {
        let can = self.abilities();
        let lacks = |what, remedy| {
            Err(TracerError::Lacks {
                kind: self,
                what,
                remedy,
            })
        };
        if wants.bursts && !can.bursts {
            return lacks(
                "tells when a thread did something, not how long it ran",
                "choose --tracer bpf, tracefs or perf",
            );
        }
        if wants.wakeups && !can.wakeups {
            return lacks(
                "does not hear wakeups",
                "leave out --wakeups, or choose --tracer bpf or tracefs",
            );
        }
        if !wants.calls.is_empty() && !can.calls {
            return lacks(
                "sees no system calls",
                "leave out --calls, or choose --tracer bpf-syscalls or ptrace",
            );
        }
        if wants.running && !can.running {
            return lacks(
                "cannot reach a process that runs already",
                "let onbeat start the program (-- CMD), or choose --tracer bpf or tracefs",
            );
        }
        Ok(())
    }
}

impl fmt::Display for TracerKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
