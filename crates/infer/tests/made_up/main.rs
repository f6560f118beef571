//! Threads whose truth is known because they are made up: the default analyser must find it.

mod analysed;
#[path = "../scoring/made_up.rs"]
mod made_up;
mod nulls;
#[path = "../synthetic/mod.rs"]
mod synthetic;
mod trains;
mod twin;
