//! Hears what tracked tasks do: the tracers, recordings, and their workload.

pub mod bpf;
mod burst_builder;
pub mod calls;
pub mod energy;
pub mod identity;
pub mod idle;
mod inbox;
pub mod perf;
pub mod preload;
pub mod preparation;
pub mod ptrace;
pub mod recording;
mod switch_event;
mod switch_sensor;
mod task_set;
pub mod tracefs;
pub mod tracer;
pub mod workload;
