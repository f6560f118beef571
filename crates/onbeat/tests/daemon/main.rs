//! `onbeat daemon` on a bus of its own, as root, asked by ordinary users.
//!
//! Only what must hold however the machine stalls is asserted: answers, states, identities; and
//! what must come in the end is waited for.

#[path = "../common/ahead.rs"]
mod ahead;
mod begun;
mod bounds;
mod busy;
mod capabilities;
mod changes;
#[path = "../common/mod.rs"]
mod common;
#[path = "../compiled/mod.rs"]
mod compiled;
mod configuring;
mod container;
#[path = "../copied/mod.rs"]
mod copied;
mod cut_off;
#[path = "../documented/mod.rs"]
mod documented;
mod holding;
mod hostile;
mod killed;
mod known;
mod lending;
mod library;
mod looking;
mod machine;
mod others;
#[path = "../own_state/mod.rs"]
mod own_state;
#[path = "../pair/mod.rs"]
mod pair;
mod paths;
mod polkit;
mod quotas;
mod realtimekit;
mod rights;
mod served;
mod serving;
mod soak;
mod sound;
mod storms;
#[path = "../common/tasks.rs"]
mod tasks;
#[path = "../terminal/mod.rs"]
mod terminal;
mod throttled;
mod unit;

use std::time::Duration;

/// How long something that must come may take on a stalled machine.
const PATIENCE: Duration = Duration::from_secs(60);
