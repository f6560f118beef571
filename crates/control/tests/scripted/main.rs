//! The whole loop, in virtual time, between a scripted sensor and a scripted actuator.

mod armed;
mod asked;
mod beat;
mod clock;
mod guard;
mod kernel;
mod owed;
mod parties;
mod pipelines;
mod processor;
mod protection;
mod refusals;
mod speed;
mod stages;
mod told;
mod two_rhythms;
mod world;
