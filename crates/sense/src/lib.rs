//! Hears what tracked tasks do: the tracers, recordings, and their workload.

pub mod bpf;
pub mod energy;
pub mod executable;
pub mod idle;
pub mod probes;
pub mod record;
pub mod replay;
pub mod tracer;
pub mod workload;
