//! Listens to the probes of libonbeat in the processes that are tracked.
//!
//! The probes stand in the programs themselves, in whatever files a process maps to execute: its own,
//! and libraries, also those it loads later. So the maps of a process are looked at when it is first
//! heard of, when it has executed another program, and from then on at growing distances: a library
//! that is loaded later is heard after two seconds at the latest. Of a program that is about to be executed
//! the files are known before, so that it is heard from its first instruction on. The kernel attaches to one
//! process only; others that map the same file pay nothing.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use libbpf_rs::{Link, ProgramMut, UsdtOpts};
use onbeat_model::{Event, Instant, Span};

use super::Error;
use crate::probes::{self, PROVIDER, Probe};
use crate::workload::started_ticks;

const FIRST_PAUSE: Span = Span::from_ms(20);
const LONGEST_PAUSE: Span = Span::from_secs(2);

/// Files whose probes are remembered; a machine runs a few hundred.
const MOST_FILES: usize = 4096;

/// A file, also if its name has gone, with its last change.
type FileId = (u64, u64, i64, i64);

/// What is listened to.
#[derive(Debug)]
pub struct Listener {
    cookie: fn(Probe) -> Option<u32>,
    processes: HashMap<u32, Process>,
    known: HashMap<FileId, Vec<Probe>>,
    /// Of processes that have ended. To let one go takes the kernel a grace period, tens of milliseconds.
    leaving: Vec<Link>,
    next: Option<Instant>,
    refused: Option<Error>,
}

#[derive(Debug)]
struct Process {
    started_ticks: u64,
    heard: HashSet<FileId>,
    links: Vec<Link>,
    next: Instant,
    pause: Span,
}

/// A file that a process maps to execute.
struct Mapped {
    range: String,
    file: FileId,
}

impl Listener {
    /// Listens to the probes that `cookie` has a number for, with which the program is called.
    #[must_use]
    pub fn new(cookie: fn(Probe) -> Option<u32>) -> Self {
        Self {
            cookie,
            processes: HashMap::new(),
            known: HashMap::new(),
            leaving: Vec::new(),
            next: None,
            refused: None,
        }
    }

    /// Takes notice of the processes that come to be tracked, or execute another program.
    pub(super) fn hear(&mut self, events: &[Event]) {
        for event in events {
            if let Event::Tracked { at, task } | Event::Renamed { at, task } = event {
                self.look_soon(task.pid, *at);
            }
        }
    }

    /// The maps of `pid` are worth a look.
    pub fn look_soon(&mut self, pid: u32, now: Instant) {
        let process = self.processes.entry(pid).or_insert_with(|| Process {
            started_ticks: started_ticks(pid).unwrap_or_default(),
            heard: HashSet::new(),
            links: Vec::new(),
            next: now,
            pause: FIRST_PAUSE,
        });
        process.next = now;
        process.pause = FIRST_PAUSE;
        self.next = Some(now);
    }

    /// The process `pid` is about to execute a program that maps `files`: attaches `program` to them. The kernel
    /// sets the probes as the files are mapped.
    pub fn expect(&mut self, pid: u32, files: &[PathBuf], program: &ProgramMut<'_>, now: Instant) {
        self.look_soon(pid, now);
        for path in files {
            if let Some(file) = id_when_mapped(path) {
                self.attach(pid, path, file, program);
            }
        }
    }

    /// Looks at the processes whose time has come, and attaches `program` to what they have got.
    pub fn look(&mut self, program: &ProgramMut<'_>, now: Instant) {
        drop(self.leaving.pop());
        if self.next.is_none_or(|next| next > now) {
            return;
        }
        let due: Vec<u32> = self
            .processes
            .iter()
            .filter(|(_, process)| process.next <= now)
            .map(|(&pid, _)| pid)
            .collect();
        for pid in due {
            self.look_at(pid, program, now);
        }
        self.next = self.processes.values().map(|process| process.next).min();
    }

    /// Why a probe could not be listened to, the first time that happened.
    #[must_use]
    pub const fn refused(&self) -> Option<&Error> {
        self.refused.as_ref()
    }

    /// How many probes' files are listened to, over all processes.
    #[must_use]
    pub fn heard(&self) -> usize {
        self.processes.values().map(|p| p.links.len()).sum()
    }

    fn look_at(&mut self, pid: u32, program: &ProgramMut<'_>, now: Instant) {
        let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
        let Some(process) = self.processes.get_mut(&pid) else {
            return;
        };
        if maps.is_empty() || started_ticks(pid) != Some(process.started_ticks) {
            let ended = self.processes.remove(&pid);
            self.leaving
                .extend(ended.into_iter().flat_map(|process| process.links));
            return;
        }
        process.next = now + process.pause;
        process.pause = (process.pause * 2).min(LONGEST_PAUSE);
        for mapped in maps.lines().filter_map(|line| mapped(pid, line)) {
            let path = format!("/proc/{pid}/map_files/{}", mapped.range);
            self.attach(pid, Path::new(&path), mapped.file, program);
        }
    }

    /// Attaches `program` to the probes in the file at `path`, in the known process `pid`, once.
    fn attach(&mut self, pid: u32, path: &Path, file: FileId, program: &ProgramMut<'_>) {
        let Some(process) = self.processes.get_mut(&pid) else {
            return;
        };
        if !process.heard.insert(file) {
            return;
        }
        if self.known.len() >= MOST_FILES {
            self.known.clear();
        }
        let probes = self
            .known
            .entry(file)
            .or_insert_with(|| File::open(path).map_or_else(|_| Vec::new(), probes::in_file));
        for &probe in probes.iter() {
            let Some(cookie) = (self.cookie)(probe) else {
                continue;
            };
            let options = UsdtOpts {
                cookie: cookie.into(),
                ..UsdtOpts::default()
            };
            let target = pid.cast_signed();
            match program.attach_usdt_with_opts(target, path, PROVIDER, probe.name(), options) {
                Ok(link) => process.links.push(link),
                // A process that has just ended has nothing more to say.
                Err(error) if started_ticks(pid) == Some(process.started_ticks) => {
                    self.refused
                        .get_or_insert_with(|| Error::kernel("listen to a probe")(error));
                }
                Err(_) => return,
            }
        }
    }
}

/// What a line of `/proc/PID/maps` says, if it is of an executable mapping of an ordinary file.
fn mapped(pid: u32, line: &str) -> Option<Mapped> {
    let range = executable(line)?;
    let file = id(&format!("/proc/{pid}/map_files/{range}"))?;
    Some(Mapped { range, file })
}

/// The name that `/proc/PID/map_files` has for the executable mapping of a file that this line speaks of: a line fills an
/// address below 4 GiB up with zeros, as a program has that is linked to one place; the name does not.
fn executable(line: &str) -> Option<String> {
    let mut fields = line.split_ascii_whitespace();
    let (begin, end) = fields.next()?.split_once('-')?;
    fields.next()?.contains('x').then_some(())?;
    (fields.nth(2)? != "0").then_some(())?;
    let address = |digits| u64::from_str_radix(digits, 16).ok();
    Some(format!("{:x}-{:x}", address(begin)?, address(end)?))
}

fn id(path: &str) -> Option<FileId> {
    let file = fs::metadata(path).ok()?;
    let id = (file.dev(), file.ino(), file.mtime(), file.mtime_nsec());
    file.is_file().then_some(id)
}

/// The file as [`mapped`] will name it: on stacked file systems a mapping names another one than its path does. So it is
/// mapped here for a moment.
fn id_when_mapped(path: &Path) -> Option<FileId> {
    let file = File::open(path).ok()?;
    // SAFETY: sysconf has no preconditions.
    let page = usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).ok()?;
    // SAFETY: a new mapping where the kernel has room; nothing reads it.
    let at = unsafe {
        let (access, kind) = (libc::PROT_READ, libc::MAP_PRIVATE);
        libc::mmap(
            std::ptr::null_mut(),
            page,
            access,
            kind,
            file.as_raw_fd(),
            0,
        )
    };
    if at == libc::MAP_FAILED {
        return None;
    }
    let begin = at.addr();
    let named = id(&format!(
        "/proc/self/map_files/{begin:x}-{:x}",
        begin + page
    ));
    // SAFETY: what was mapped above, and nobody else knows of it.
    unsafe { libc::munmap(at, page) };
    named
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mapping_at_a_low_address_has_its_name_without_the_zeros_of_its_line() {
        let line = "00401000-00479000 r-xp 00001000 00:02 301            /usr/bin/static";
        assert_eq!(executable(line).as_deref(), Some("401000-479000"));
        let line = "7f0123456000-7f0123458000 r-xp 00000000 08:01 77     /lib/libc.so.6";
        let name = executable(line);
        assert_eq!(name.as_deref(), Some("7f0123456000-7f0123458000"));
    }

    #[test]
    fn only_executable_mappings_of_files_are_looked_at() {
        let data = "00479000-004a1000 r--p 00079000 00:02 301 /usr/bin/static";
        let code_without_a_file = "7ffd7a5c4000-7ffd7a5c6000 r-xp 00000000 00:00 0 [vdso]";
        for line in [data, code_without_a_file, "", "x", "zz-zz r-xp 0 0 1"] {
            assert_eq!(executable(line), None, "{line}");
        }
    }
}
