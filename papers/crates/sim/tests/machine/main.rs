//! The machine with small task sets.

mod common;
mod reserve;
mod theory;
mod twin;
