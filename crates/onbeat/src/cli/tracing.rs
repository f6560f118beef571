//! The flags that say how programs are heard.

use clap::{Args, ValueEnum};
use onbeat_sense::calls::Call;
use onbeat_sense::tracer::Kind;

/// How programs are heard.
#[derive(Debug, Args)]
pub(crate) struct TracingOptions {
    /// How programs are heard
    #[arg(
        long,
        value_enum,
        value_name = "WHICH",
        default_value_t,
        help_heading = "Tracing"
    )]
    tracer: TracerName,
    /// The system calls that are heard, as in `nanosleep,futex`; without this, all in which a thread can wait
    ///
    /// For a tracer of system calls (`bpf-syscalls`, `ptrace`).
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
    /// The first that works here and can do what is asked
    #[default]
    Auto,
    /// BPF programs in the kernel: hears most, costs least, needs root
    Bpf,
    /// System calls by BPF, as moments: with `--predictor rate`, the LFS++ paper's way; needs root
    BpfSyscalls,
    /// The kernel's own trace: where BPF is missing, needs root
    Tracefs,
    /// perf events: one's own programs without root; hears when they run, not when they are woken
    Perf,
    /// Stops at the system calls that may wait, for everybody: hears all that onbeat starts, and costs most
    Ptrace,
    /// A library in the program, for everybody: costs little, does not hear static and set-user-ID programs
    Preload,
}

impl TracingOptions {
    /// The tracer that was chosen, if one was.
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
