//! Hears what tracked tasks do: the tracers, recordings, and their workload.

pub mod bpf;
mod clock;
mod course;
pub mod energy;
pub mod executable;
mod followed;
pub mod idle;
pub mod perf;
pub mod probes;
mod raw;
pub mod record;
pub mod replay;
pub mod tracefs;
pub mod tracer;
mod wait;
pub mod workload;
