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
#[path = "../common/child.rs"]
mod child;
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
#[path = "../common/root.rs"]
mod root;
mod served;
mod serving;
#[path = "../common/skip.rs"]
mod skip;
mod soak;
mod sound;
mod storms;
#[path = "../common/tasks.rs"]
mod tasks;
#[path = "../terminal/mod.rs"]
mod terminal;
#[path = "../common/text.rs"]
mod text;
mod throttled;
mod unit;

/// What nearly every test uses.
mod prelude {
    pub(crate) use std::fs;
    pub(crate) use std::io::{BufRead, BufReader, Write};
    pub(crate) use std::path::{Path, PathBuf};
    pub(crate) use std::process::{Command, Stdio};
    pub(crate) use std::time::{Duration, Instant};

    pub(crate) use onbeat_act::attributes::{Attributes, Fair, Policy};
    pub(crate) use serde_json::{Value, json};

    pub(crate) use crate::PATIENCE;
    pub(crate) use crate::child::{child_of, comm};
    pub(crate) use crate::common::{Mortal, eventually, until, within};
    pub(crate) use crate::copied::copy_program;
    pub(crate) use crate::machine::*;
    pub(crate) use crate::own_state::{onbeat, state_files};
    pub(crate) use crate::skip::skip;
    pub(crate) use crate::text::{has, stderr, stdout};
}

use std::time::Duration;

/// How long something that must come may take on a stalled machine.
const PATIENCE: Duration = Duration::from_secs(60);
