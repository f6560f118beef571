//! What onbeat's programs have in common on the command line.
//!
//! Results go to standard output, messages to standard error. A reader that goes away (a closed
//! pipe) ends a command quietly.

pub mod child;
pub mod ending;
pub mod guard;
pub mod output;
pub mod pages;
pub mod signals;
pub mod state;
pub mod table;
pub mod values;
