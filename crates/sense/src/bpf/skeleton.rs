//! The BPF programs, compiled, and the types by which libbpf loads them: made by `build.rs`.
#![allow(unreachable_pub, clippy::all, clippy::undocumented_unsafe_blocks)]

include!(concat!(env!("OUT_DIR"), "/tracer.skel.rs"));
