//! The flags of the tracers.

use clap::{Args, ValueEnum};
use onbeat_sense::calls::Call;
use onbeat_sense::tracer::Kind;

/// The tracer.
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

/// `--tracer`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum TracerName {
    /// The first of bpf, tracefs, perf, ptrace and preload that works here and suits the other
    /// flags
    #[default]
    Auto,
    /// BPF programs in the kernel; needs root, sees most
    Bpf,
    /// System calls by BPF, as the LFS++ paper did it; needs root, and for `run` `--predictor rate`
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

impl TracingOptions {
    /// The chosen tracer; none for auto.
    pub(crate) const fn choice(&self) -> Option<Kind> {
        match self.tracer {
            TracerName::Auto => None,
            TracerName::Bpf => Some(Kind::Bpf),
            TracerName::BpfSyscalls => Some(Kind::BpfSyscalls),
            TracerName::Tracefs => Some(Kind::Tracefs),
            TracerName::Perf => Some(Kind::Perf),
            TracerName::Ptrace => Some(Kind::Ptrace),
            TracerName::Preload => Some(Kind::Preload),
        }
    }
}
