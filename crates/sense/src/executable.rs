//! Which files a program maps to execute as it starts: itself, and the libraries that it links.
//!
//! Asked before the program runs, so that its probes are listened to from its first instruction on.
//! Where libraries are found depends on the environment, a cache and the files themselves; the
//! dynamic linker alone knows it for certain, and says it (`--list`) without running anything of
//! the program.

use std::ffi::OsStr;
use std::fs::File;
use std::io::BufReader;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use object::elf::{FileHeader64, PT_INTERP};
use object::read::elf::{FileHeader, ProgramHeader};
use object::{Endianness, ReadCache, ReadRef};

/// `program`, and the libraries that it would be started with in this environment.
///
/// `program` alone if it is no dynamic ELF file of 64 bits, or its linker is not of the kind that
/// says.
#[must_use]
pub fn mapped_by(program: &Path) -> Vec<PathBuf> {
    let mut files = vec![program.to_owned()];
    let linker = File::open(program)
        .ok()
        .and_then(|file| linker_in(&ReadCache::new(BufReader::new(file))));
    let Some(linker) = linker else {
        return files;
    };
    let listed = Command::new(linker)
        .arg("--list")
        .arg(program)
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output();
    if let Ok(listed) = listed {
        let lines = listed.stdout.split(|&byte| byte == b'\n');
        files.extend(lines.filter_map(library).map(Path::to_owned));
    }
    files
}

/// The dynamic linker that an ELF file of these bytes names, if it is one of those that list:
/// glibc's or musl's.
#[must_use]
pub fn linker_in_bytes(bytes: &[u8]) -> Option<PathBuf> {
    linker_in(bytes)
}

/// Whether an ELF file names no dynamic linker at all. A file of another kind is not static either.
pub(crate) fn is_static<'data>(file: impl ReadRef<'data>) -> bool {
    let segments = || {
        let header = FileHeader64::<Endianness>::parse(file).ok()?;
        let endian = header.endian().ok()?;
        Some((endian, header.program_headers(endian, file).ok()?))
    };
    segments().is_some_and(|(endian, segments)| {
        let mut kinds = segments.iter().map(|segment| segment.p_type(endian));
        !kinds.any(|kind| kind == PT_INTERP)
    })
}

fn linker_in<'data>(file: impl ReadRef<'data>) -> Option<PathBuf> {
    let header = FileHeader64::<Endianness>::parse(file).ok()?;
    let endian = header.endian().ok()?;
    let segments = header.program_headers(endian, file).ok()?;
    let named = segments
        .iter()
        .find(|segment| segment.p_type(endian) == PT_INTERP)?;
    (named.p_filesz(endian) <= libc::PATH_MAX as u64).then_some(())?;
    let path = named.data(endian, file).ok()?.split(|&byte| byte == 0);
    let path = Path::new(OsStr::from_bytes(path.into_iter().next()?));
    let name = path.file_name()?.as_bytes();
    let lists = name.starts_with(b"ld-linux") || name.starts_with(b"ld-musl");
    (lists && path.is_absolute()).then(|| path.to_owned())
}

/// The path in a line such as `libc.so.6 => /lib/libc.so.6 (0x00007f0000000000)`.
fn library(line: &[u8]) -> Option<&Path> {
    let line = line.trim_ascii();
    let arrow = line.windows(4).position(|part| part == b" => ");
    let path = arrow.map_or(line, |at| &line[at + 4..]);
    let end = path.windows(4).rposition(|part| part == b" (0x")?;
    path.starts_with(b"/")
        .then(|| Path::new(OsStr::from_bytes(&path[..end])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_maps_itself_and_what_its_linker_finds() {
        let own = std::env::current_exe().unwrap();
        let files = mapped_by(&own);
        assert_eq!(files[0], own);
        assert!(
            files
                .iter()
                .any(|file| file.to_string_lossy().contains("libc.")),
            "{files:?}"
        );
        assert!(files.iter().all(|file| file.is_file()), "{files:?}");
    }

    #[test]
    fn what_is_no_dynamic_program_maps_itself_alone() {
        let folder = tempfile::tempdir().unwrap();
        for bytes in [&b""[..], b"#!/bin/sh\n", b"\x7fELF\x02\x01\x01"] {
            let file = folder.path().join("file");
            std::fs::write(&file, bytes).unwrap();
            assert_eq!(mapped_by(&file), [file]);
        }
        let missing = folder.path().join("missing");
        assert_eq!(mapped_by(&missing), [missing]);
    }

    #[test]
    fn a_damaged_program_names_a_linker_or_none() {
        let whole = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let head = &whole[..8192];
        assert!(linker_in_bytes(head).is_some());
        let mut x: u64 = 7;
        for _ in 0..20_000 {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let mut damaged = head.to_vec();
            damaged[(x >> 32) as usize % 1024] = (x >> 24) as u8;
            let linker = linker_in_bytes(&damaged[..(x >> 40) as usize % head.len()]);
            assert!(linker.is_none_or(|linker| linker.is_absolute()));
        }
    }

    #[test]
    fn a_line_of_the_linker_s_names_a_file_or_nothing() {
        let path = |line: &str| library(line.as_bytes()).map(|path| path.display().to_string());
        let found = Some("/lib x/libm.so.6".to_owned());
        assert_eq!(path("\tlibm.so.6 => /lib x/libm.so.6 (0x00007f01)"), found);
        assert_eq!(path("\t/lib x/libm.so.6 (0x00007f01)"), found);
        for nothing in [
            "\tlinux-vdso.so.1 (0x00007ffc)",
            "\tlibx.so => not found",
            "\tstatically linked",
            "",
            " => ",
        ] {
            assert_eq!(path(nothing), None, "{nothing}");
        }
    }
}
