//! The page of state that the BPF programs and user space both see: `struct shared` of record.h.

use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use libbpf_rs::MapHandle;
use memmap2::{MmapOptions, MmapRaw};
use onbeat_model::{Follow, TaskId};

use super::skeleton::types::{self, shared};
use super::{BpfError, wire};

pub(super) const UNWANTED: usize = 64;

/// A field of the page, to be read and written while the programs do the same.
macro_rules! field {
    ($shared:ident.$field:ident $(.$part:tt)? as $atomic:ident) => {
        // SAFETY: the page stays mapped as long as `self` lives, and is only accessed by atomics.
        unsafe { $atomic::from_ptr(&raw mut (*$shared.page()).$field$(.$part)?) }
    };
}

pub(super) enum IteratorCommand<'a> {
    Track { tid: u32, follow: Follow },
    Untrack(&'a [TaskId]),
}

pub(super) struct Answer {
    pub(super) found: u32,
    pub(super) added: u32,
    /// Tasks that there was no room for.
    pub(super) refused: u32,
}

// The state is all of the programs' `.bss`, and begins where that does.
const _: () = assert!(
    std::mem::offset_of!(types::bss, shared) == 0 && size_of::<types::bss>() == size_of::<shared>()
);

#[derive(Debug)]
pub(super) struct SharedPage(MmapRaw);

impl SharedPage {
    pub(super) fn map(map: &MapHandle) -> Result<Self, BpfError> {
        let page = MmapOptions::new()
            .len(size_of::<shared>())
            .map_raw(&map.as_fd());
        page.map(Self)
            .map_err(|source| BpfError::kernel("map the tracer's state")(source.into()))
    }

    fn page(&self) -> *mut shared {
        self.0.as_mut_ptr().cast()
    }

    fn unwanted(&self) -> &[AtomicU64; UNWANTED] {
        // SAFETY: as with each field; an atomic has its number's layout.
        unsafe {
            let unwanted: *mut [u64; UNWANTED] = &raw mut (*self.page()).unwanted;
            &*unwanted.cast()
        }
    }

    pub(super) fn lost(&self) -> u64 {
        field!(self.lost as AtomicU64).load(Ordering::Relaxed)
    }

    pub(super) fn missed(&self) -> u64 {
        field!(self.missed as AtomicU64).load(Ordering::Relaxed)
    }

    pub(super) fn alive(&self) -> u64 {
        field!(self.alive as AtomicU64).load(Ordering::Acquire)
    }

    pub(super) fn ask(&mut self, request: IteratorCommand<'_>) {
        let (wanted, kind, follow) = match request {
            IteratorCommand::Track { tid, follow } => {
                (tid.into(), types::request::REQUEST_TRACK, follow)
            }
            IteratorCommand::Untrack(tasks) => {
                let mut count = 0;
                for (place, task) in self.unwanted().iter().zip(tasks) {
                    place.store(wire::pack(*task), Ordering::Relaxed);
                    count += 1;
                }
                field!(self.unwanted_count as AtomicU32).store(count, Ordering::Relaxed);
                (0, types::request::REQUEST_UNTRACK, Follow::Alone)
            }
        };
        let follow = match follow {
            Follow::Alone => types::follow::FOLLOW_NOTHING,
            Follow::Threads => types::follow::FOLLOW_THREADS,
            Follow::Children => types::follow::FOLLOW_CHILDREN,
        };
        field!(self.wanted as AtomicU64).store(wanted, Ordering::Relaxed);
        field!(self.request.0 as AtomicU32).store(kind.0, Ordering::Relaxed);
        field!(self.follow.0 as AtomicU32).store(follow.0, Ordering::Relaxed);
        field!(self.found as AtomicU32).store(0, Ordering::Relaxed);
        field!(self.added as AtomicU32).store(0, Ordering::Relaxed);
        field!(self.refused as AtomicU32).store(0, Ordering::Relaxed);
    }

    pub(super) fn answer(&self) -> Answer {
        Answer {
            found: field!(self.found as AtomicU32).load(Ordering::Acquire),
            added: field!(self.added as AtomicU32).load(Ordering::Acquire),
            refused: field!(self.refused as AtomicU32).load(Ordering::Acquire),
        }
    }
}
