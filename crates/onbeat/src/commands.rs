//! One module per command.

pub(crate) mod analyze;
pub(crate) mod doctor;
pub(crate) mod generate;
pub(crate) mod reserve;
pub(crate) mod restore;
