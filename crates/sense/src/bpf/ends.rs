//! How tasks end that have reservations: `ends` of tracer.bpf.c. They need not be tracked.

use std::sync::Arc;

use libbpf_rs::{MapCore, MapFlags, MapHandle};
use onbeat_model::TaskId;

use super::skeleton::types::end;
use super::wire;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It was under SCHED_DEADLINE to its end.
    Reserved,
    /// It had left SCHED_DEADLINE.
    Left,
}

/// See the file's head. Copies are of the same table.
#[derive(Clone, Debug)]
pub struct Ends {
    map: Arc<MapHandle>,
}

impl Ends {
    pub(super) fn new(map: MapHandle) -> Self {
        Self { map: Arc::new(map) }
    }

    /// The end of `task` is to be known. Where there is no room for one more, it will not be.
    pub fn watch(&self, task: TaskId) {
        let unknown = end::END_UNKNOWN.0.to_ne_bytes();
        let _ = self.map.update(&key(task), &unknown, MapFlags::NO_EXIST);
    }

    pub fn forget(&self, task: TaskId) {
        // One that was never watched is not there.
        let _ = self.map.delete(&key(task));
    }

    /// How `task` ended; none if the kernel has not freed it yet, or it is not watched.
    pub fn of(&self, task: TaskId) -> Option<End> {
        let value = self.map.lookup(&key(task), MapFlags::ANY).ok().flatten()?;
        match end(u32::from_ne_bytes(value.try_into().ok()?)) {
            end::END_RESERVED => Some(End::Reserved),
            end::END_LEFT => Some(End::Left),
            _ => None,
        }
    }
}

fn key(task: TaskId) -> [u8; 8] {
    wire::pack(task).to_ne_bytes()
}
