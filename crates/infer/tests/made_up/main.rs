//! What the default analyser must say of threads whose truth is known because they are made up.

mod analysed;
#[path = "../scoring/made_up.rs"]
mod made_up;
mod nulls;
#[path = "../synthetic/mod.rs"]
mod synthetic;
mod trains;
mod twin;
