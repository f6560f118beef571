//! The LFS++ paper and its forerunners as they are written, for experiments.
//!
//! [`Analyser`] finds a period by the spectrum of a thread's wakeups (section 5.2), [`predictor`]
//! has the budgets of these papers and others, and [`reference`] the feedback controllers of LFS,
//! LFS++ and AQuoSA at the seams of onbeat's loop.

mod analyser;
pub mod predictor;
pub mod reference;
mod scheme;

pub use analyser::{Analyser, Config, analyse, rhythm};
