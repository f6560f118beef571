//! onbeat's own recording: what a sensor said, kept with the facts of the kernel and machine it was
//! said on, so that a trace from one machine can be judged on another.
//!
//! JSON lines: [`Facts`] first, then one [`Event`](onbeat_model::Event) each, in the order they
//! were heard. `docs/formats.md` has every field; [`crate::replay`] reads it back.

mod facts;
mod writer;

pub use facts::{FORMAT, Facts, VERSION};
pub use writer::{RecordError, Writer};
