//! The kernel's clocks, descriptors and `/proc`, as `sense`, `act`, `metrics` and the command line
//! read them. Nothing here changes anything but the signals that the calling thread blocks.

pub mod clock;
pub mod cpus;
pub mod proc;
pub mod signals;
pub mod wait;
