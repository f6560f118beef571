//! The live view: what onbeat does with each thread, on a terminal.
//!
//! ```text
//!  the service, over D-Bus ─┐
//!  a loop of one's own ─────┼─ Snapshot ──▶ Model ──▶ draw ──▶ the terminal
//!  a run's report ──────────┘                 ▲ keys
//! ```
//!
//! The [`Model`] is the same for all sources, and the screen follows from it and its own size
//! alone. Names come from other people's programs: they are made harmless where they are drawn.

mod application;
mod bus;
mod columns;
mod draw;
mod feed;
mod keys;
mod model;
mod once;
mod page;
mod screen;
mod symbols;
mod text;
mod thread;

pub use bus::{ServiceConnection, ServiceError, connect, follow, progress};
pub use draw::draw;
pub use feed::{Feed, Feeder, Gone, News, SNAPSHOT_EVERY, Snapshot};
pub use model::Model;
pub use once::{as_lines, as_table};
pub use screen::{ScreenLook, show};
pub use text::{Align, harmless};
