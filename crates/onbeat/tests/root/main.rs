//! Commands that need root and a live kernel, on short-lived programs of our own.
//!
//! Nothing here depends on how long anything takes: programs run until they are told to end, and
//! what must come is waited for.

#[path = "../common/child.rs"]
mod child;
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
#[path = "../common/root.rs"]
mod root;
#[path = "../common/text.rs"]
mod text;
mod tracefs;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use child::child_of;
use common::{Mortal, eventually, until};
use own_state::{onbeat, state_files};
use serde_json::Value;
use text::{has, stderr, stdout};

/// How long something that must come may take on a stalled machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// onbeat to its end, with its state in this folder.
fn ran(folder: &Path, words: &[&str]) -> Output {
    onbeat(folder).args(words).output().unwrap()
}

fn started(folder: &Path, words: &[&str]) -> Mortal {
    Mortal::spawn(onbeat(folder).args(words).stderr(Stdio::null()))
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
