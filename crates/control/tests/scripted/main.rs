//! The whole loop, in virtual time, between a scripted sensor and a scripted actuator.

mod beat;
mod refusals;
mod world;
