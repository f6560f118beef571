//! The flags of the tracers.

use clap::{Args, ValueEnum};
use onbeat_sense::calls::Call;
use onbeat_sense::tracer::TracerKind;

#[derive(Debug, Args)]
pub(crate) struct TracingOptions {
    /// Tracer that observes the program; `onbeat doctor` lists those that work here
    #[arg(
        long,
        value_enum,
        value_name = "WHICH",
        default_value_t,
        help_heading = "Tracing"
    )]
    tracer: TracerName,
    /// System calls to trace, such as nanosleep,futex [default: all in which a thread can wait]
    ///
    /// For the tracers of system calls (`bpf-syscalls`, `ptrace`).
    #[arg(
        long,
        value_name = "NAMES",
        value_delimiter = ',',
        help_heading = "Tracing"
    )]
    pub(crate) calls: Vec<Call>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum TracerName {
    /// The first of bpf, tracefs, perf, ptrace and preload that works here and suits the other
    /// flags
    #[default]
    Auto,
    /// BPF programs in the kernel; needs root, sees most
    Bpf,
    /// System calls by BPF, as the LFS++ paper did it; needs root
    BpfSyscalls,
    /// The kernel's own trace, without BPF; needs root
    Tracefs,
    /// perf events, for your own programs; sees when they run, not when they are woken
    Perf,
    /// Stops at system calls that may wait, for any program that onbeat starts; slows it down most
    Ptrace,
    /// A library in a program that onbeat starts; not for static or set-user-ID programs
    Preload,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum LoopTracer {
    /// The first of bpf, tracefs and ptrace that works here and suits the other flags
    #[default]
    Auto,
    /// BPF programs in the kernel; needs root, sees most
    Bpf,
    /// The kernel's own trace, without BPF; needs root
    Tracefs,
    /// Stops at system calls that may wait, for any program that onbeat starts; slows it down most
    Ptrace,
}

impl TracingOptions {
    pub(crate) const fn choice(&self) -> &'static [TracerKind] {
        match self.tracer {
            TracerName::Auto => &TracerKind::AUTO,
            TracerName::Bpf => &[TracerKind::Bpf],
            TracerName::BpfSyscalls => &[TracerKind::BpfSyscalls],
            TracerName::Tracefs => &[TracerKind::Tracefs],
            TracerName::Perf => &[TracerKind::Perf],
            TracerName::Ptrace => &[TracerKind::Ptrace],
            TracerName::Preload => &[TracerKind::Preload],
        }
    }
}

impl LoopTracer {
    pub(crate) const fn choice(self) -> &'static [TracerKind] {
        match self {
            Self::Auto => &[TracerKind::Bpf, TracerKind::Tracefs, TracerKind::Ptrace],
            Self::Bpf => &[TracerKind::Bpf],
            Self::Tracefs => &[TracerKind::Tracefs],
            Self::Ptrace => &[TracerKind::Ptrace],
        }
    }
}
