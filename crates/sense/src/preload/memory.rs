//! The memory that is shared with the programs that are heard.
//!
//! It is a file without a name, which a program opens through onbeat's own folder in `/proc`:
//! nothing is left behind, whatever happens. Its size is sealed, or a program that made it smaller
//! would kill its reader. Once onbeat is gone, another process may have its number: so the library
//! writes only to what its own user has sealed like this.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::atomic::AtomicU64;

use memmap2::{MmapOptions, MmapRaw};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};

use super::ring::{RECORDS, WORDS};

const LENGTH: usize = (RECORDS + 1) * WORDS;
const BYTES: usize = LENGTH * size_of::<AtomicU64>();

/// A ring, as `ring.h` has it.
#[derive(Debug)]
pub(super) struct Memory {
    file: File,
    words: MmapRaw,
}

impl Memory {
    pub(super) fn new() -> io::Result<Self> {
        let file = nameless("onbeat-ring", MemfdFlags::empty())?;
        file.set_len(BYTES as u64)?;
        fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW)?;
        let words = MmapOptions::new().len(BYTES).map_raw(&file)?;
        Ok(Self { file, words })
    }

    pub(super) fn words(&self) -> &[AtomicU64] {
        // SAFETY: the mapping has this length, is aligned to a page, and lives as long as `self`;
        // any bytes are valid words, and they are only ever accessed as atomics.
        unsafe { std::slice::from_raw_parts(self.words.as_ptr().cast(), LENGTH) }
    }

    pub(super) fn path(&self) -> String {
        path(&self.file)
    }
}

/// A file of our own without a name, of which others find the content by [`path`].
pub(super) fn nameless(name: &str, flags: MemfdFlags) -> io::Result<File> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING | flags;
    Ok(memfd_create(name, flags)?.into())
}

/// Where processes of the same user find it, while this one has it open.
pub(super) fn path(file: &File) -> String {
    format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd())
}

#[cfg(test)]
mod tests {
    use std::io::Read;
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

    /// A program that sleeps, with the library, and its memory at `ring`.
    fn sleep_with(ring: &str) {
        let library = super::super::library::Library::new().unwrap();
        let status = std::process::Command::new("sleep")
            .arg("0.001")
            .env("LD_PRELOAD", library.path())
            .env("ONBEAT_RING", ring)
            .status()
            .expect("there is a sleep");
        assert!(status.success());
    }

    #[test]
    fn a_program_writes_to_memory_that_its_user_has_sealed_and_to_no_other_file() {
        let memory = Memory::new().unwrap();
        sleep_with(&memory.path());
        assert_ne!(memory.words()[0].load(Ordering::Relaxed), 0);

        let unsealed = nameless("unsealed", MemfdFlags::empty()).unwrap();
        unsealed.set_len(BYTES as u64).unwrap();
        let named = tempfile::NamedTempFile::new().unwrap();
        named.as_file().set_len(BYTES as u64).unwrap();
        sleep_with(&super::path(&unsealed));
        sleep_with(named.path().to_str().unwrap());
        for mut file in [unsealed, named.into_file()] {
            let mut content = Vec::new();
            file.read_to_end(&mut content).unwrap();
            assert!(content.len() == BYTES && content.iter().all(|&byte| byte == 0));
        }
    }
}
