//! The parts that the tracer of the kernel's live trace has in common with recordings of it.

pub(crate) use super::ftrace::content as line;
pub(crate) use super::sched_text::Content;
