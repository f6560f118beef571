//! The threads of processes, and which of them hold a reservation.

use std::path::Path;

use onbeat_act::attributes::{Attributes, Policy};
use onbeat_act::task::numbers;

use crate::common::eventually;

/// The threads of a process, the first one first.
pub(crate) fn tids(pid: u32) -> Vec<u32> {
    let mut tids: Vec<u32> = numbers(Path::new(&format!("/proc/{pid}/task"))).collect();
    tids.sort_unstable();
    tids
}

pub(crate) fn is_reserved(tid: u32) -> bool {
    Attributes::get(tid).is_ok_and(|now| matches!(now.policy, Policy::Deadline(_)))
}

/// Some thread of the process that holds a reservation, as soon as there is one.
pub(crate) fn reserved_thread(pid: u32) -> u32 {
    eventually("a reservation", || {
        tids(pid).into_iter().find(|&tid| is_reserved(tid))
    })
}
