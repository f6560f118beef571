//! The ring that the kernel writes what happens on one CPU to.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use perf_event_open_sys::bindings::perf_event_mmap_page;

/// A mapped ring, with the event that it belongs to.
#[derive(Debug)]
pub(super) struct Ring {
    event: OwnedFd,
    page: NonNull<perf_event_mmap_page>,
    page_bytes: usize,
    data_bytes: usize,
}

impl Ring {
    /// Maps the ring of `event`, of `pages` pages, a power of two.
    pub(super) fn map(event: OwnedFd, pages: usize) -> io::Result<Self> {
        // SAFETY: sysconf has no preconditions.
        let page_bytes = usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) })
            .map_err(io::Error::other)?;
        let data_bytes = page_bytes * pages;
        // SAFETY: a new mapping at an address of the kernel's choice.
        let page = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                page_bytes + data_bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                event.as_raw_fd(),
                0,
            )
        };
        if page == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let page = NonNull::new(page.cast()).ok_or(io::ErrorKind::AddrNotAvailable)?;
        Ok(Self {
            event,
            page,
            page_bytes,
            data_bytes,
        })
    }

    /// Moves all that the kernel has written to the end of `bytes`.
    pub(super) fn read(&mut self, bytes: &mut Vec<u8>) {
        let page = self.page.as_ptr();
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
        let length = usize::try_from(end.wrapping_sub(begin)).map_or(0, |n| n.min(self.data_bytes));
        let from = begin as usize % self.data_bytes;
        let first = length.min(self.data_bytes - from);
        // SAFETY: the data lies behind the first page; both parts are in it, and the kernel does
        // not write there before the tail has passed.
        unsafe {
            let data = self.page.as_ptr().cast::<u8>().add(self.page_bytes);
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

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: it was mapped with this size, and no other code has the address.
        unsafe { libc::munmap(self.page.as_ptr().cast(), self.page_bytes + self.data_bytes) };
    }
}

// SAFETY: the mapping belongs to no thread, and is read through `&mut self` alone.
unsafe impl Send for Ring {}
