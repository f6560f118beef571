//! How fast the CPUs are to run, without a job noticing that they run slower (LFS++, section 6.3).
//!
//! One [rule](Band::wants) is powernowd's: the highest speed at once when the machine is too busy,
//! one speed less when it has too little to do. The [other](Uniform::wants) is GRACE-OS's: the
//! lowest speed at which all budgets fit. A fall makes every job longer, so it is made in two
//! steps, the mode-change protocol: budgets first, by the [projection](projected_share) of eq. 6,
//! and the speed only when every task certainly has its new budget. A fall after which not all
//! budgets would fit is dismissed. [`PowerManager`] keeps that order.

mod protocol;
mod rule;
#[cfg(test)]
mod tests;

pub use protocol::{PowerManager, ProtocolRule, SpeedStep};
pub use rule::{Band, Uniform, projected_fit, projected_share};
