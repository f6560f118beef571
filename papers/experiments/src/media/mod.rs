//! A film, and a player that tells how far sound and picture are apart.

mod clip;
mod player;

pub(crate) use clip::{Clip, made};
pub(crate) use player::{Played, play};
