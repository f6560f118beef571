//! `onbeat-node`: a plugin of containerd and CRI-O that turns annotations of pods into rules of the
//! onbeat service.
//!
//! The runtime tells its plugins of each container over NRI (Node Resource Interface), before the
//! container starts. `mux` and `ttrpc` read its socket, `api` has its messages, `plugin` answers
//! them, `annotations` reads those of pods, and `rules` keeps one file for each container in the
//! service's folder. `session` holds the connection.
//!
//! A pod's annotations are written by the pod's author, who is not to be trusted. A mistake in them
//! is logged; the container starts all the same.

pub mod annotations;
pub mod api;
pub mod mux;
pub mod plugin;
pub mod rules;
pub mod session;
pub mod ttrpc;

mod signals;

pub use signals::{EndingSignals, WaitEnd};
