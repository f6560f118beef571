//! One module per command.

pub(crate) mod analyze;
pub(crate) mod attach;
mod compare;
pub(crate) mod daemon;
pub(crate) mod doctor;
pub(crate) mod generate;
mod keep;
pub(crate) mod mark;
pub(crate) mod plan;
pub(crate) mod record;
pub(crate) mod replay;
pub(crate) mod report;
pub(crate) mod reserve;
pub(crate) mod restore;
pub(crate) mod run;
pub(crate) mod scheduler;
mod served;
pub(crate) mod sim;
pub(crate) mod top;
pub(crate) mod watch;
