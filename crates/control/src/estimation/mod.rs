//! From what is heard of a thread to its period: whether it has one, how sure that is, and for how
//! long it is believed.

pub(crate) mod analysis;
pub(crate) mod clock;
pub(crate) mod declared;
pub(crate) mod lock;
pub(crate) mod probation;
pub(crate) mod schedule;
pub(crate) mod starvation;
pub(crate) mod timeouts;
pub(crate) mod verification;

use std::collections::VecDeque;

use onbeat_model::TaskId;

use probation::Probations;

/// The analyses that wait for their turn, and the probations under way.
#[derive(Debug, Default)]
pub(crate) struct Estimating {
    pub(crate) analyses: VecDeque<TaskId>,
    pub(crate) verifications: VecDeque<TaskId>,
    pub(crate) probations: Probations,
}
