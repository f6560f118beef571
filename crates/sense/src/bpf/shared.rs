//! The page of state that the BPF programs and user space both see: `struct shared` of record.h.

use std::os::fd::{AsFd, AsRawFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use libbpf_rs::MapHandle;
use onbeat_model::{Follow, TaskId};

use super::{Error, skeleton::types, wire};

/// The number of tasks that are dismissed at a time.
pub(super) const UNWANTED: usize = 64;

#[derive(Debug)]
#[repr(C)]
struct State {
    lost: AtomicU64,
    alive: AtomicU64,
    wanted: AtomicU64,
    request: AtomicU32,
    follow: AtomicU32,
    found: AtomicU32,
    added: AtomicU32,
    refused: AtomicU32,
    unwanted_count: AtomicU32,
    unwanted: [AtomicU64; UNWANTED],
    may_wait: AtomicU32,
}

const _: () = assert!(size_of::<State>() == size_of::<types::shared>());

/// The command for the task iterator.
pub(super) enum Request<'a> {
    Track {
        tid: u32,
        follow: Follow,
    },
    /// At most [`UNWANTED`].
    Untrack(&'a [TaskId]),
}

/// The outcome.
pub(super) struct Answer {
    /// Matching tasks.
    pub(super) found: u32,
    /// The number of these that are tracked from now on.
    pub(super) added: u32,
    /// The number of these that there was no room for.
    pub(super) refused: u32,
}

/// The page, mapped.
#[derive(Debug)]
pub(super) struct Shared(NonNull<State>);

impl Shared {
    /// Maps the programs' `.bss`.
    pub(super) fn map(map: &MapHandle) -> Result<Self, Error> {
        // SAFETY: a new mapping at an address of the kernel's choice.
        let page = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                size_of::<State>(),
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                map.as_fd().as_raw_fd(),
                0,
            )
        };
        if page == libc::MAP_FAILED {
            let source = std::io::Error::last_os_error().into();
            return Err(Error::kernel("map the tracer's state")(source));
        }
        NonNull::new(page.cast())
            .map(Self)
            .ok_or_else(|| Error::loading(libbpf_rs::Error::from_raw_os_error(libc::EFAULT)))
    }

    fn state(&self) -> &State {
        // SAFETY: the page stays mapped as long as `self` lives, and is only accessed by atomics.
        unsafe { self.0.as_ref() }
    }

    /// Records lost since the programs were loaded.
    pub(super) fn lost(&self) -> u64 {
        self.state().lost.load(Ordering::Relaxed)
    }

    /// Tasks tracked now.
    pub(super) fn alive(&self) -> u64 {
        self.state().alive.load(Ordering::Acquire)
    }

    /// Whether a budget that runs out does not end a poll.
    pub(super) fn let_wait(&self, may_wait: bool) {
        self.state()
            .may_wait
            .store(may_wait.into(), Ordering::Relaxed);
    }

    /// Writes down what the iterator is to do when it runs next.
    pub(super) fn ask(&mut self, request: Request<'_>) {
        let state = self.state();
        let (wanted, kind, follow) = match request {
            Request::Track { tid, follow } => (tid.into(), 0, follow),
            Request::Untrack(tasks) => {
                let mut count = 0;
                for (place, task) in state.unwanted.iter().zip(tasks) {
                    place.store(wire::pack(*task), Ordering::Relaxed);
                    count += 1;
                }
                state.unwanted_count.store(count, Ordering::Relaxed);
                (0, 1, Follow::Alone)
            }
        };
        let follow = match follow {
            Follow::Alone => 0,
            Follow::Threads => 1,
            Follow::Children => 2,
        };
        state.wanted.store(wanted, Ordering::Relaxed);
        state.request.store(kind, Ordering::Relaxed);
        state.follow.store(follow, Ordering::Relaxed);
        for answer in [&state.found, &state.added, &state.refused] {
            answer.store(0, Ordering::Relaxed);
        }
    }

    /// The outcome of the iterator's last run.
    pub(super) fn answer(&self) -> Answer {
        let state = self.state();
        Answer {
            found: state.found.load(Ordering::Acquire),
            added: state.added.load(Ordering::Acquire),
            refused: state.refused.load(Ordering::Acquire),
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // SAFETY: it was mapped with this size, and no other code has the address.
        unsafe { libc::munmap(self.0.as_ptr().cast(), size_of::<State>()) };
    }
}

// SAFETY: the page belongs to no thread, and is only accessed by atomics.
unsafe impl Send for Shared {}
