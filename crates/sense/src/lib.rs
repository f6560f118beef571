//! Hears what tracked tasks do: the tracers, recordings, and their workload.

pub mod bpf;
pub mod calls;
mod clock;
mod course;
pub mod energy;
pub mod executable;
mod followed;
mod following;
pub mod identity;
pub mod idle;
mod inbox;
pub mod perf;
pub mod preload;
pub mod preparation;
pub mod probes;
pub mod ptrace;
mod raw;
pub mod record;
pub mod replay;
pub mod tracefs;
pub mod tracer;
mod wait;
pub mod workload;
