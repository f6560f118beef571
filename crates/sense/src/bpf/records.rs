//! The ring buffer's reading end, which puts what it reads into an inbox.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use libbpf_rs::{MapHandle, RingBuffer, RingBufferBuilder};

use super::inbox::EventBatch;
use super::{BpfError, programs, wire};
use onbeat_model::{Origin, RunningProgram, TaskId};

#[derive(Debug)]
pub(super) struct Records {
    map: MapHandle,
    ring: RingBuffer<'static>,
    inbox: Arc<Mutex<EventBatch>>,
}

impl Records {
    pub(super) fn new(map: MapHandle) -> Result<Self, BpfError> {
        let inbox = Arc::new(Mutex::new(EventBatch::default()));
        let into = Arc::clone(&inbox);
        let mut builder = RingBufferBuilder::new();
        builder
            .add(&map, move |bytes| {
                if let Some(event) = wire::event(bytes) {
                    let mut inbox = lock(&into);
                    if let Some((task, origin)) = wire::origin(bytes) {
                        inbox.push_origin(task, origin);
                    }
                    inbox.push(event);
                } else if let Some((program, _)) = programs::running(bytes) {
                    lock(&into).push_begun(program);
                }
                0
            })
            .map_err(BpfError::loading)?;
        let ring = builder.build().map_err(BpfError::loading)?;
        Ok(Self { map, ring, inbox })
    }

    /// The processes that executed a program of a wanted name since this was last called.
    pub(super) fn take_begun(&self) -> Vec<RunningProgram> {
        lock(&self.inbox).take_begun()
    }

    pub(super) fn forget_origins(&self) {
        lock(&self.inbox).forget_origins();
    }

    /// Where a task comes from that was named since then.
    pub(super) fn origin(&self, task: TaskId) -> Option<Origin> {
        lock(&self.inbox).origin(task)
    }

    pub(super) fn read(&mut self) -> Result<MutexGuard<'_, EventBatch>, BpfError> {
        self.ring
            .consume()
            .map_err(BpfError::kernel("read the trace"))?;
        Ok(lock(&self.inbox))
    }
}

/// Readable if half of the buffer is full, or if some of it cannot wait.
impl AsFd for Records {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.map.as_fd()
    }
}

fn lock(inbox: &Mutex<EventBatch>) -> MutexGuard<'_, EventBatch> {
    inbox.lock().unwrap_or_else(PoisonError::into_inner)
}
