//! Parses what users choose: the maps of processes, and the notes of their programs' files.
//!
//! Root has a process of its own for it, which has no rights (`helper`): a mistake in a parser then
//! costs an answer, not the machine. It gets each file as a descriptor, with a socket for the
//! answer. Nothing in an answer is believed: its length and its counts have limits, and a
//! site that is no instruction of a probe hears nothing.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use super::helper;
use super::maps::{self, Mapped};
use crate::bpf::listener::maps::MOST_MAPPED;
use crate::probes::MOST_SITES;
use crate::probes::{self, Argument, Probe, Site};

/// How long an answer is waited for. Longer than `LONGEST_REQUEST_S`, so that a file that takes too
/// long ends the helper first.
const ANSWER: std::time::Duration = std::time::Duration::from_secs(3);

/// The longest answer: the most mappings, each with a path of the longest length.
const ANSWER_BYTES: u64 = MOST_MAPPED as u64 * (4 + 5 * 8 + libc::PATH_MAX as u64);

/// A kind of file to be parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FileKind {
    /// `/proc/PID/maps`.
    Maps,
    /// A program or a library.
    Elf,
}

/// See the file's head. The helper ends with the last copy of this.
#[derive(Clone, Debug)]
pub struct Parser(ParserLocation);

#[derive(Clone, Debug)]
enum ParserLocation {
    Here,
    /// The end of the helper's socket that requests are sent to.
    Helper(Arc<OwnedFd>),
}

impl Parser {
    /// A parser in the calling process: for an ordinary user, whose rights are all that a file can
    /// gain.
    #[must_use]
    pub const fn here() -> Self {
        Self(ParserLocation::Here)
    }

    /// Starts the helper process, which ends with this one. To be called before this process has
    /// a second thread, because the helper is a copy of it.
    ///
    /// # Errors
    /// If there is another thread, or the kernel refuses a process.
    pub fn start() -> io::Result<Self> {
        Self::begin(false)
    }

    /// The same with nice -20, for a command that was started for one program: that program's
    /// start does not wait behind hogs.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub fn start_ahead() -> io::Result<Self> {
        Self::begin(true)
    }

    fn begin(ahead: bool) -> io::Result<Self> {
        let threads = std::fs::read_dir("/proc/self/task")?.count();
        if threads > 1 {
            let text = "the helper must be started before other threads";
            return Err(io::Error::other(text));
        }
        Ok(Self(ParserLocation::Helper(Arc::new(helper::start(
            ahead,
        )?))))
    }

    /// The executable mappings of files in `maps`, with the files' names.
    pub(super) fn maps(&self, maps: File) -> io::Result<Vec<(Mapped, PathBuf)>> {
        match &self.0 {
            ParserLocation::Here => Ok(maps::executable(maps)),
            ParserLocation::Helper(requests) => {
                let answer = ask(requests, FileKind::Maps, &maps)?;
                maps_in(&mut &*answer).ok_or_else(damaged)
            }
        }
    }

    /// Whether a program's own file has probes of libonbeat; false if that cannot be told. Its
    /// libraries are not looked at.
    #[must_use]
    pub fn finds_probes(&self, program: &Path) -> bool {
        let mut open = OpenOptions::new();
        let file = open.read(true).custom_flags(libc::O_NONBLOCK).open(program);
        let sites = file.and_then(|file| self.probes(&file));
        sites.is_ok_and(|sites| !sites.is_empty())
    }

    /// Where the probes stand in `file`.
    pub(super) fn probes(&self, file: &File) -> io::Result<Vec<Site>> {
        match &self.0 {
            ParserLocation::Here => Ok(probes::in_file(file.try_clone()?)),
            ParserLocation::Helper(requests) => {
                let answer = ask(requests, FileKind::Elf, file)?;
                sites_in(&mut &*answer).ok_or_else(damaged)
            }
        }
    }
}

/// The helper's answer about a file, in bytes.
pub(super) fn answer(kind: FileKind, file: File) -> Vec<u8> {
    match kind {
        FileKind::Maps => bytes_of_maps(&maps::executable(file)),
        FileKind::Elf => bytes_of_sites(&probes::in_file(file)),
    }
}

/// The names of the executable mappings in a helper's answer, and the sites of probes in one; none
/// if the bytes are no such answer.
#[must_use]
pub fn in_answer(bytes: &[u8]) -> (Option<Vec<PathBuf>>, Option<Vec<Site>>) {
    let maps = maps_in(&mut &*bytes);
    let names = maps.map(|maps| maps.into_iter().map(|(_, path)| path).collect());
    (names, sites_in(&mut &*bytes))
}

/// The names of the executable mappings in the text of `/proc/PID/maps`.
#[must_use]
pub fn in_maps(text: &[u8]) -> Vec<PathBuf> {
    let maps = maps::executable(text);
    maps.into_iter().map(|(_, path)| path).collect()
}

/// The file cannot be parsed now: the caller tries again later.
fn damaged() -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, "no whole answer about a file")
}

fn ask(requests: &OwnedFd, kind: FileKind, file: &File) -> io::Result<Vec<u8>> {
    let (mut answers, theirs) = UnixStream::pair()?;
    let files = [file.as_raw_fd(), theirs.as_raw_fd()];
    helper::send(requests.as_fd(), kind, files).map_err(|_| damaged())?;
    drop(theirs);
    let until = Instant::now() + ANSWER;
    let mut answer = Vec::new();
    let mut piece = [0; 4096];
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() || answer.len() as u64 > ANSWER_BYTES {
            return Err(damaged());
        }
        answers.set_read_timeout(Some(left))?;
        match answers.read(&mut piece) {
            // The end: the helper's, too, which leaves an answer that is not whole.
            Ok(0) => return Ok(answer),
            Ok(length) => answer.extend(piece.iter().take(length)),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return Err(damaged()),
        }
    }
}

fn put(bytes: &mut Vec<u8>, number: u64) {
    bytes.extend(number.to_ne_bytes());
}

fn take(bytes: &mut &[u8]) -> Option<u64> {
    let (number, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(u64::from_ne_bytes(*number))
}

/// The length of a list, if it is at most this.
fn take_count(bytes: &mut &[u8], most: usize) -> Option<usize> {
    let count = usize::try_from(take(bytes)?).ok()?;
    (count <= most).then_some(count)
}

/// A list that ends with the bytes, of at most `most` entries, each made of some bytes.
fn list_in<T>(
    bytes: &mut &[u8],
    most: usize,
    one: impl Fn(&mut &[u8]) -> Option<T>,
) -> Option<Vec<T>> {
    let count = take_count(bytes, most)?;
    let mut list = Vec::new();
    for _ in 0..count {
        list.push(one(bytes)?);
    }
    bytes.is_empty().then_some(list)
}

fn bytes_of_maps(maps: &[(Mapped, PathBuf)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    put(&mut bytes, maps.len() as u64);
    for (mapped, path) in maps {
        for number in mapped.numbers() {
            put(&mut bytes, number);
        }
        let path = path.as_os_str().as_bytes();
        put(&mut bytes, path.len() as u64);
        bytes.extend(path);
    }
    bytes
}

fn maps_in(bytes: &mut &[u8]) -> Option<Vec<(Mapped, PathBuf)>> {
    list_in(bytes, MOST_MAPPED, |bytes| {
        let mut numbers = [0; 5];
        for number in &mut numbers {
            *number = take(bytes)?;
        }
        let mapped = Mapped::of_numbers(numbers)?;
        let length = take_count(bytes, libc::PATH_MAX as usize)?;
        let (path, rest) = bytes.split_at_checked(length)?;
        *bytes = rest;
        Some((mapped, OsString::from_vec(path.to_vec()).into()))
    })
}

fn bytes_of_sites(sites: &[Site]) -> Vec<u8> {
    let mut bytes = Vec::new();
    put(&mut bytes, sites.len() as u64);
    for site in sites {
        let probe = Probe::ALL.iter().position(|probe| *probe == site.probe);
        put(&mut bytes, probe.unwrap_or_default() as u64);
        put(&mut bytes, site.offset);
        for argument in site.arguments {
            let (kind, value) = match argument {
                Argument::Constant(value) => (0, value.cast_unsigned()),
                Argument::Register {
                    place,
                    size_log2,
                    is_signed,
                } => (
                    1 | u64::from(is_signed) << 1,
                    u64::from(place) << 8 | u64::from(size_log2),
                ),
            };
            put(&mut bytes, kind);
            put(&mut bytes, value);
        }
    }
    bytes
}

fn sites_in(bytes: &mut &[u8]) -> Option<Vec<Site>> {
    list_in(bytes, MOST_SITES, |bytes| {
        let probe = usize::try_from(take(bytes)?).ok()?;
        Some(Site {
            probe: *Probe::ALL.get(probe)?,
            offset: take(bytes)?,
            arguments: [argument_in(bytes)?, argument_in(bytes)?],
        })
    })
}

fn argument_in(bytes: &mut &[u8]) -> Option<Argument> {
    let (kind, value) = (take(bytes)?, take(bytes)?);
    let [size_log2, place, ..] = value.to_le_bytes();
    Some(match kind {
        0 => Argument::Constant(value.cast_signed()),
        1 | 3 if Argument::is_register(place, size_log2) => Argument::Register {
            place,
            size_log2,
            is_signed: kind == 3,
        },
        _ => return None,
    })
}

#[cfg(test)]
mod tests;
