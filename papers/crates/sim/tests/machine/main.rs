//! The machine with small task sets.

mod common;
mod theory;
mod twin;
