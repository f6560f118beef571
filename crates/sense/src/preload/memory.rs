//! The memory that is shared with the programs that are heard, and the library that they are given.
//!
//! Both are files without a name, which a program opens through onbeat's own folder in `/proc`: nothing is left
//! behind, whatever happens. Their sizes are sealed, or a program that made one smaller would kill its reader.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsRawFd, FromRawFd};
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;

use super::ring::{RECORDS, WORDS};

const LENGTH: usize = (RECORDS + 1) * WORDS;
const BYTES: usize = LENGTH * size_of::<AtomicU64>();

/// A ring, as `ring.h` has it.
#[derive(Debug)]
pub(super) struct Memory {
    file: File,
    words: NonNull<AtomicU64>,
}

// SAFETY: the mapping belongs to no thread, and its words are atomic.
unsafe impl Send for Memory {}

impl Memory {
    pub(super) fn new() -> io::Result<Self> {
        let file = nameless(c"onbeat-ring", 0)?;
        file.set_len(BYTES as u64)?;
        seal(&file, libc::F_SEAL_SHRINK | libc::F_SEAL_GROW)?;
        let (access, descriptor) = (libc::PROT_READ | libc::PROT_WRITE, file.as_raw_fd());
        // SAFETY: a new mapping at a place that the kernel chooses, of a file that has the size and keeps it.
        let words = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                BYTES,
                access,
                libc::MAP_SHARED,
                descriptor,
                0,
            )
        };
        if words == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let words = NonNull::new(words.cast()).ok_or(io::ErrorKind::InvalidData)?;
        Ok(Self { file, words })
    }

    pub(super) fn words(&self) -> &[AtomicU64] {
        // SAFETY: the mapping has this length, is aligned to a page, and lives as long as `self`; any bytes are valid
        // words, and they are only ever accessed as atomics.
        unsafe { std::slice::from_raw_parts(self.words.as_ptr(), LENGTH) }
    }

    /// Where programs find it.
    pub(super) fn path(&self) -> String {
        path(&self.file)
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and no reference to it outlives `self`.
        unsafe { libc::munmap(self.words.as_ptr().cast(), BYTES) };
    }
}

/// The library, for as long as this lives.
#[derive(Debug)]
pub(super) struct Library(File);

impl Library {
    pub(super) fn new() -> io::Result<Self> {
        let bytes = include_bytes!(concat!(env!("OUT_DIR"), "/listener.so"));
        // Where executable ones must be asked for, and where that word is not known yet.
        let file = nameless(c"onbeat-listener", libc::MFD_EXEC);
        let mut file = file.or_else(|_| nameless(c"onbeat-listener", 0))?;
        file.write_all(bytes)?;
        seal(
            &file,
            libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_WRITE,
        )?;
        Ok(Self(file))
    }

    pub(super) fn path(&self) -> String {
        path(&self.0)
    }
}

fn nameless(name: &std::ffi::CStr, flags: u32) -> io::Result<File> {
    let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING | flags;
    // SAFETY: the name is a string that outlives the call.
    let file = unsafe { libc::memfd_create(name.as_ptr(), flags) };
    if file < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is new and nobody else's.
    Ok(unsafe { File::from_raw_fd(file) })
}

fn seal(file: &File, seals: i32) -> io::Result<()> {
    // SAFETY: numbers only.
    let sealed = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, seals) };
    if sealed < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

fn path(file: &File) -> String {
    format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd())
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use super::*;

    #[test]
    fn what_another_writes_is_read_and_nobody_can_make_it_smaller() {
        let memory = Memory::new().unwrap();
        let other = File::options()
            .read(true)
            .write(true)
            .open(memory.path())
            .unwrap();
        std::os::unix::fs::FileExt::write_at(&other, &7_u64.to_ne_bytes(), 0).unwrap();
        assert_eq!(memory.words()[0].load(Ordering::Relaxed), 7);
        assert!(other.set_len(0).is_err());
    }

    #[test]
    fn the_library_is_an_elf_file_that_nobody_can_change() {
        let library = Library::new().unwrap();
        assert!(
            std::fs::read(library.path())
                .unwrap()
                .starts_with(b"\x7fELF")
        );
        let other = File::options().write(true).open(library.path()).unwrap();
        assert!(std::os::unix::fs::FileExt::write_at(&other, b"x", 0).is_err());
    }
}
