//! The ring that the kernel writes what happens on one CPU to.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};

use memmap2::{MmapOptions, MmapRaw};
use perf_event_open_sys::bindings::perf_event_mmap_page;

/// A mapped ring, with the event that it belongs to.
#[derive(Debug)]
pub(super) struct Ring {
    event: OwnedFd,
    /// A page of the kernel's, and then the data.
    memory: MmapRaw,
    page_bytes: usize,
}

impl Ring {
    /// Maps the ring of `event`, of `pages` pages, a power of two.
    pub(super) fn map(event: OwnedFd, pages: usize) -> io::Result<Self> {
        let page_bytes = rustix::param::page_size();
        let length = page_bytes * (1 + pages);
        Ok(Self {
            memory: MmapOptions::new().len(length).map_raw(&event)?,
            event,
            page_bytes,
        })
    }

    pub(super) fn read(&mut self, bytes: &mut Vec<u8>) {
        let page: *mut perf_event_mmap_page = self.memory.as_mut_ptr().cast();
        let data_bytes = self.memory.len() - self.page_bytes;
        // SAFETY: the page is mapped as long as `self` lives; the fields are aligned numbers which
        // both sides access whole. There is no reference to the page, because the kernel writes it.
        let (head, tail) = unsafe {
            (
                AtomicU64::from_ptr(&raw mut (*page).data_head),
                AtomicU64::from_ptr(&raw mut (*page).data_tail),
            )
        };
        let end = head.load(Ordering::Acquire);
        let begin = tail.load(Ordering::Relaxed);
        let length = usize::try_from(end.wrapping_sub(begin)).map_or(0, |n| n.min(data_bytes));
        let from = begin as usize % data_bytes;
        let first = length.min(data_bytes - from);
        // SAFETY: the data lies behind the first page; both parts are in it, and the kernel does
        // not write there before the tail has passed.
        unsafe {
            let data = self.memory.as_ptr().add(self.page_bytes);
            bytes.extend_from_slice(std::slice::from_raw_parts(data.add(from), first));
            bytes.extend_from_slice(std::slice::from_raw_parts(data, length - first));
        }
        tail.store(end, Ordering::Release);
    }
}

impl AsFd for Ring {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }
}
