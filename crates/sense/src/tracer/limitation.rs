//! A program that a tracer does not hear, or that does not run as it would without: told before it
//! starts.

use std::fmt;
use std::fs::{self, File};
use std::io::BufReader;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use object::elf::{FileHeader64, PT_INTERP};
use object::read::elf::{FileHeader, ProgramHeader};
use object::{Endianness, ReadCache};
use rustix::process::geteuid;

use super::TracerKind;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limitation {
    /// Nothing is loaded into it.
    Static,
    /// It raises its privileges, and the kernel's linker then loads nothing of ours into it.
    Raised,
    /// It would raise its privileges, but cannot while it is traced.
    Lowered,
}

impl Limitation {
    /// The reason why `kind` does not hear `program`, or changes it; none if all is well as far as
    /// the file tells.
    pub fn of(kind: TracerKind, program: &Path) -> Option<Self> {
        let user = geteuid().as_raw();
        let facts = fs::metadata(program).ok()?;
        let raises = facts.mode() & libc::S_ISUID != 0 && facts.uid() != user;
        match kind {
            TracerKind::Ptrace => (raises && user != 0).then_some(Self::Lowered),
            TracerKind::Preload if raises => Some(Self::Raised),
            TracerKind::Preload => is_static(program).then_some(Self::Static),
            _ => None,
        }
    }
}

/// An ELF file without a dynamic linker. A script, or what cannot be read, is none.
fn is_static(program: &Path) -> bool {
    let segments = || {
        let file = ReadCache::new(BufReader::new(File::open(program).ok()?));
        let header = FileHeader64::<Endianness>::parse(&file).ok()?;
        let endian = header.endian().ok()?;
        let segments = header.program_headers(endian, &file).ok()?;
        let mut kinds = segments.iter().map(|segment| segment.p_type(endian));
        Some(!kinds.any(|kind| kind == PT_INTERP))
    };
    segments() == Some(true)
}

impl fmt::Display for Limitation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Static => "is linked statically: the preload tracer does not hear it; take --tracer ptrace",
            Self::Raised => {
                "raises its privileges (set-user-ID): the preload tracer does not hear it; watch it as root, by \
                 another tracer"
            }
            Self::Lowered => {
                "cannot raise its privileges (set-user-ID) while it is traced by ptrace: it runs with yours"
            }
        })
    }
}
