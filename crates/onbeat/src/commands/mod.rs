//! One module per command.

pub(crate) mod analyze;
pub(crate) mod attach;
pub(crate) mod daemon;
pub(crate) mod doctor;
pub(crate) mod generate;
pub(crate) mod keep;
pub(crate) mod lab;
pub(crate) mod mark;
pub(crate) mod record;
pub(crate) mod replay;
pub(crate) mod report;
pub(crate) mod reserve;
pub(crate) mod restore;
pub(crate) mod run;
mod served;
pub(crate) mod top;
pub(crate) mod watch;
