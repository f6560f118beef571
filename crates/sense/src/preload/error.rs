//! Why programs cannot be heard by a library, and what to do.

use std::io;
use std::path::{Path, PathBuf};

#[derive(Debug, thiserror::Error)]
pub enum PreloadError {
    #[error(
        "process {tid} was not started by onbeat: the preload tracer sees only programs that it starts itself; \
         start it under onbeat, or take another tracer"
    )]
    NotStartedHere { tid: u32 },
    #[error("cannot share memory with programs ({source}): is /proc mounted, and memory free?")]
    NoMemory { source: io::Error },
    #[error(
        "cannot put the library that programs are preloaded with into {} ({source}): root's programs load it only from \
         a folder of root's; {}take another tracer",
        folder.display(), another(folder, chosen)
    )]
    NoLibrary {
        folder: PathBuf,
        source: io::Error,
        chosen: &'static str,
    },
    #[error(
        "programs can load no library from {}, which is mounted noexec: {}take another tracer",
        folder.display(), another(folder, chosen)
    )]
    NotExecuted {
        folder: PathBuf,
        chosen: &'static str,
    },
    #[error(
        "{} can be changed by others than root, so root's programs load no library from there: 'chown root' and \
         'chmod go-w' it; in a user namespace that has not the machine's root in it, take another tracer",
        path.display()
    )]
    NotOnlyRoots { path: PathBuf },
    #[error(
        "onbeat runs with raised privileges (set-user-ID), and no library is preloaded into what it starts: take \
         another tracer"
    )]
    Raised,
    #[error("process {tid} has ended: there is nothing to track")]
    Gone { tid: u32 },
}

/// Advice for the first step where the library was to be in this folder.
fn another(folder: &Path, chosen: &str) -> String {
    match folder == Path::new(chosen) {
        true => String::new(),
        false => format!("'sudo mkdir {chosen}' makes another folder for it, or "),
    }
}
