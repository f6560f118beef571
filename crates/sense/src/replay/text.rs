//! What the tracer that reads the kernel's trace while it is written has in common with recordings
//! of it.

pub(crate) use super::ftrace::content as line;
pub(crate) use super::sched_text::Content;
