//! The kernel's clocks, descriptors and `/proc`, as `sense`, `act`, `metrics` and the command line
//! read them. Nothing here changes anything.

pub mod clock;
pub mod cpus;
pub mod proc;
pub mod wait;
