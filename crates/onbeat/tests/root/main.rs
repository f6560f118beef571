//! Commands that need root and a live kernel, on short-lived programs of our own.
//!
//! Nothing here depends on how long anything takes: programs run until they are told to end, and
//! what must come is waited for.

#[path = "../common/mod.rs"]
mod common;
#[path = "../documented/mod.rs"]
mod documented;
mod formats;
#[path = "../common/guard.rs"]
mod guard;
#[path = "../own_state/mod.rs"]
mod own_state;
mod record;
mod reserve;
mod restore;
mod tracefs;

use std::process::Output;
use std::time::Duration;

use common::{Mortal, eventually, needs_root};
use own_state::{onbeat, state_files};

/// How long something that must come may take on a stalled machine.
const PATIENCE: Duration = Duration::from_secs(60);

fn stdout(output: &Output) -> &str {
    std::str::from_utf8(&output.stdout).expect("results are text")
}

fn stderr(output: &Output) -> &str {
    std::str::from_utf8(&output.stderr).expect("messages are text")
}

/// The kernel's number of the policy that `tid` has now: 0 SCHED_OTHER, 6 SCHED_DEADLINE.
fn policy(tid: u32) -> i32 {
    const RESET_ON_FORK: i32 = 0x4000_0000;
    // SAFETY: takes a number; -1 if there is no such thread.
    let policy = unsafe { libc::sched_getscheduler(tid.cast_signed()) };
    if policy < 0 {
        policy
    } else {
        policy & !RESET_ON_FORK
    }
}

const DEADLINE: i32 = 6;
