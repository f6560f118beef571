//! The thread that looks at processes and their files, and attaches to the probes that it finds.
//!
//! A process costs bounded memory, a bounded number of descriptors, and this thread's time alone.
//! Processes are looked at one after the other, and a longer look, but the first, is followed by a
//! longer pause. Files are opened without waiting, because a lease could keep this thread waiting
//! for its owner. A file that cannot be opened now is tried at a later look.

use std::collections::{HashMap, HashSet, VecDeque};
use std::ffi::CString;
use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, mpsc};

use onbeat_model::{Instant, Span};

use super::attach::Attacher;
use super::maps::MOST_MAPPED;
use super::maps::Mapped;
use super::parser::Parser;
use super::{BpfError, ListenerResults, Message};
use crate::identity;
use crate::probes::{Probe, Site};
use onbeat_kernel::proc::started_ticks;

use crate::probes::MOST_SITES;
use crate::workload::most_open;
use onbeat_kernel::clock;

/// From the first look at a process to the second; each further pause is twice as long. One frame
/// at 50 a second: a library that is loaded late is heard from the second frame.
const FIRST_PAUSE: Span = Span::from_ms(20);
/// And the longest. A hundred of the first pause; what a program maps this late, it maps seldom.
const LONGEST_PAUSE: Span = Span::from_secs(2);
/// The shortest pause after a look at a process, but the first, in lengths of the look. Looks take
/// 5% of a CPU.
const PAUSE_PER_LOOK: u64 = 20;
/// The most files whose probes are remembered. At most 10 MiB; a machine runs a few hundred.
const MOST_FILES: usize = 1024;
/// The most new mappings of a process that one look opens. A hundred libraries take some 20 ms, so
/// these take less than one frame at 60 a second.
const MOST_OPENED: usize = 64;
/// The most mappings and probes of a process that are remembered. Each of its mappings is mapped
/// four times.
const MOST_SEEN: usize = 4 * MOST_MAPPED;
/// Each user's processes may have this part of all probes: one in this number. Four users with many
/// programs each.
const PART_OF_USER: usize = 4;

/// A file and its last change. It may have lost its name.
type FileId = (u64, u64, i64, u32);

/// The files that a process is about to map.
#[derive(Debug)]
pub(super) struct Expected {
    pub(super) pid: u32,
    pub(super) files: Vec<PathBuf>,
    /// Told once it is listened to.
    pub(super) done: mpsc::Sender<()>,
}

#[derive(Debug)]
struct Process {
    started_ticks: u64,
    user: u32,
    /// Mappings that were looked at.
    seen: HashSet<Mapped>,
    heard: HashSet<FileId>,
    links: Vec<OwnedFd>,
    next: Instant,
    pause: Span,
}

/// See the file's head.
#[derive(Debug)]
pub(super) struct Ear {
    cookie: fn(Probe) -> Option<u32>,
    attacher: Attacher,
    parser: Parser,
    told: Arc<ListenerResults>,
    processes: HashMap<u32, Process>,
    known: HashMap<FileId, Vec<Site>>,
    /// The links of processes that have gone, each with its user. Closing one takes the kernel a
    /// grace period of tens of milliseconds.
    leaving: VecDeque<(u32, OwnedFd)>,
    /// The number of probes of each user's processes, and the limit for all, with those that are
    /// leaving.
    of_users: HashMap<u32, usize>,
    most: usize,
}

impl Ear {
    pub(super) fn new(
        cookie: fn(Probe) -> Option<u32>,
        program: OwnedFd,
        parser: Parser,
        told: Arc<ListenerResults>,
    ) -> Self {
        Self {
            cookie,
            attacher: Attacher::new(program),
            parser,
            told,
            processes: HashMap::new(),
            known: HashMap::new(),
            leaving: VecDeque::new(),
            of_users: HashMap::new(),
            most: most_open() / 2,
        }
    }

    /// The same with the largest share of an ordinary thread. A reader of a process's mappings
    /// keeps it from mapping more meanwhile: behind hogs, for tens of milliseconds. Not for
    /// whatever programs a machine's users start: a program that forks without end would have this
    /// thread take a CPU from others.
    pub(super) fn listen_ahead(self, commands: &UnixStream, expected: &mpsc::Receiver<Expected>) {
        // Without permission, this thread stays ordinary.
        // SAFETY: a plain system call about the calling thread.
        unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, -20) };
        self.listen(commands, expected);
    }

    /// Runs until its listener is dropped.
    pub(super) fn listen(mut self, commands: &UnixStream, expected: &mpsc::Receiver<Expected>) {
        loop {
            let now = clock::now();
            let due = self
                .processes
                .iter()
                .min_by_key(|(_, process)| process.next);
            let due = due.map(|(&pid, process)| (pid, process.next.since(now)));
            let pause = match (self.leaving.is_empty(), due) {
                (true, Some((_, pause))) => Some(pause.max(Span::from_ms(1))),
                (true, None) => None,
                (false, _) => Some(Span::from_ms(1)),
            };
            let pause = pause.map(|pause| std::time::Duration::from_nanos(pause.as_ns()));
            let mut message = [0; Message::SIZE];
            let mut commands = commands;
            if commands.set_read_timeout(pause).is_err() {
                return;
            }
            match commands.read(&mut message) {
                Ok(Message::SIZE) => self.obey(Message::of(message), expected),
                Ok(_) => return,
                Err(error) if is_passing(&error) => {}
                Err(_) => return,
            }
            if let Some((user, link)) = self.leaving.pop_front() {
                drop(link);
                self.count(user, false);
            }
            if let Some((pid, pause)) = due
                && pause.is_zero()
            {
                self.look_at(pid);
            }
        }
    }

    fn obey(&mut self, message: Message, expected: &mpsc::Receiver<Expected>) {
        match message {
            Message::Look { pid, started_ticks } => self.look_soon(pid, started_ticks),
            Message::Forget { pid } => self.forget(pid),
            Message::Expect => {
                for expected in expected.try_iter() {
                    for path in &expected.files {
                        if let Some((file, id)) = as_mapped(path) {
                            // A file that is not parsed now is tried again once it is mapped.
                            let _ = self.listen_to(expected.pid, &file, id);
                        }
                    }
                    // The waiting side may have given up.
                    let _ = expected.done.send(());
                }
            }
        }
    }

    fn look_soon(&mut self, pid: u32, started_ticks: u64) {
        let known = self.processes.get(&pid);
        if known.is_some_and(|process| process.started_ticks != started_ticks) {
            self.forget(pid);
        }
        let now = clock::now();
        let process = self.processes.entry(pid).or_insert_with(|| Process {
            started_ticks,
            user: identity::user(pid).unwrap_or_default(),
            seen: HashSet::new(),
            heard: HashSet::new(),
            links: Vec::new(),
            next: now,
            pause: FIRST_PAUSE,
        });
        // After an exec the process may map other files at the same addresses.
        process.seen.clear();
        process.next = process.next.min(now);
        process.pause = FIRST_PAUSE;
    }

    fn forget(&mut self, pid: u32) {
        if let Some(process) = self.processes.remove(&pid) {
            let links = process.links.into_iter();
            self.told.heard.fetch_sub(links.len(), Ordering::Relaxed);
            self.leaving.extend(links.map(|link| (process.user, link)));
        }
    }

    fn look_at(&mut self, pid: u32) {
        let began = clock::now();
        let Some(process) = self.processes.get_mut(&pid) else {
            return;
        };
        let is_first = process.seen.is_empty() && process.pause == FIRST_PAUSE;
        let maps = File::open(format!("/proc/{pid}/maps"));
        // The parser may not answer, and a process that executes a program maps nothing for a
        // moment: later.
        let found = maps.and_then(|maps| self.parser.maps(maps));
        let found = found.unwrap_or_else(|error| {
            if error.kind() == io::ErrorKind::TimedOut && process.pause == LONGEST_PAUSE {
                refuse(&self.told, error);
            }
            Vec::new()
        });
        if started_ticks(pid) != Some(process.started_ticks) {
            self.forget(pid);
            return;
        }
        let is_new = |(mapped, _): &(Mapped, _)| !process.seen.contains(mapped);
        let left = MOST_SEEN.saturating_sub(process.seen.len());
        let new = found.into_iter().filter(is_new);
        let new: Vec<_> = new.take(MOST_OPENED.min(left)).collect();
        for (mapped, path) in &new {
            if !self.look_into(pid, *mapped, path) {
                break;
            }
        }
        if let Some(process) = self.processes.get_mut(&pid) {
            let pause = process.pause;
            // On a busy machine a short look may wait for seconds. A first look may be long: each
            // program that is executed has one in any case.
            let long = if is_first {
                Span::ZERO
            } else {
                clock::now().since(began)
            };
            Self::rest(process, long);
            if new.len() >= MOST_OPENED {
                // There may be more.
                process.pause = pause;
            }
        }
    }

    /// The process is looked at again after a pause, which is longer each time, and longer after a
    /// long look, of this length.
    fn rest(process: &mut Process, long: Span) {
        let pause = process.pause.max(long * PAUSE_PER_LOOK);
        process.next = clock::now() + pause;
        process.pause = (process.pause * 2).min(LONGEST_PAUSE);
    }

    /// Listens to the file of a new mapping. False if the parser does not answer: others wait, too.
    fn look_into(&mut self, pid: u32, mapped: Mapped, path: &Path) -> bool {
        let listened = file_of(pid, mapped, path).and_then(|file| {
            let Some(id) = id(&file)? else {
                return Ok(());
            };
            if self.known.contains_key(&id) {
                return self.listen_to(pid, &file, id);
            }
            let readable = format!("/proc/self/fd/{}", file.as_raw_fd());
            let readable = open(Path::new(&readable), libc::O_RDONLY)?;
            self.listen_to(pid, &readable, id)
        });
        let is_waited_for =
            |kind| matches!(kind, io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut);
        match listened {
            // Another process has a lease on it, or one of its folders is not in the kernel's
            // memory, or may not be entered. Or the parser does not answer.
            Err(error) if is_waited_for(error.kind()) => {
                let is_answered = error.kind() != io::ErrorKind::TimedOut;
                let process = self.processes.get(&pid);
                if process.is_some_and(|process| process.pause == LONGEST_PAUSE) {
                    refuse(&self.told, error);
                }
                return is_answered;
            }
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                refuse(&self.told, error);
            }
            _ => {}
        }
        if let Some(process) = self.processes.get_mut(&pid) {
            process.seen.insert(mapped);
        }
        true
    }

    /// Attaches to the probes in a file, in the known process `pid`, once.
    ///
    /// # Errors
    /// If the file cannot be parsed now.
    fn listen_to(&mut self, pid: u32, file: &File, id: FileId) -> io::Result<()> {
        let Some(process) = self.processes.get_mut(&pid) else {
            return Ok(());
        };
        if process.heard.len() >= MOST_SEEN || process.heard.contains(&id) {
            return Ok(());
        }
        let sites = match self.known.get(&id) {
            Some(sites) => sites.clone(),
            None => self.parser.probes(file)?,
        };
        process.heard.insert(id);
        let (user, started) = (process.user, process.started_ticks);
        if self.known.len() >= MOST_FILES {
            self.known.clear();
        }
        self.known.insert(id, sites.clone());
        for site in sites {
            let cookie = (self.cookie)(site.probe).and_then(|kind| site.cookie(kind));
            let (Some(cookie), true) = (cookie, self.has_room(pid, user)) else {
                continue;
            };
            let attached = (self.attacher).attach(pid, file.as_fd(), site.offset, cookie);
            // The process may have ended, and its number may be another process's.
            if started_ticks(pid) != Some(started) {
                return Ok(());
            }
            match attached {
                Ok(link) => {
                    self.count(user, true);
                    if let Some(process) = self.processes.get_mut(&pid) {
                        process.links.push(link);
                        self.told.heard.fetch_add(1, Ordering::Relaxed);
                    }
                }
                Err(error) => {
                    let error = BpfError::kernel("listen to a probe")(error.into());
                    // Only the first is kept.
                    let _ = self.told.refused.set(error);
                }
            }
        }
        Ok(())
    }

    fn has_room(&self, pid: u32, user: u32) -> bool {
        let process = self.processes.get(&pid).map_or(0, |p| p.links.len());
        let of_user = self.of_users.get(&user).copied().unwrap_or_default();
        process < MOST_SITES
            && of_user < self.most / PART_OF_USER
            && self.of_users.values().sum::<usize>() < self.most
    }

    /// Counts one probe more for the user, or one less.
    fn count(&mut self, user: u32, more: bool) {
        let count = self.of_users.entry(user).or_default();
        *count = if more { *count + 1 } else { *count - 1 };
        if *count == 0 {
            self.of_users.remove(&user);
        }
    }
}

/// Keeps the reason why a mapping cannot be looked into, if it is the first one.
fn refuse(told: &ListenerResults, error: io::Error) {
    let refused = BpfError::kernel("look into what a program maps")(error.into());
    let _ = told.refused.set(refused);
}

/// True if nothing came in time.
fn is_passing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
    )
}

/// Opens a file without waiting, and without making it this process's terminal.
fn open(path: &Path, access: i32) -> io::Result<File> {
    let mut options = OpenOptions::new();
    let flags = access | libc::O_NONBLOCK | libc::O_NOCTTY;
    options.read(true).custom_flags(flags).open(path)
}

/// The file behind a mapping, by `O_PATH`. `/proc/PID/map_files` needs capabilities that the
/// service does not have. The service opens the file by its name in the process's root directory,
/// and tests that it is still the file that is mapped.
fn file_of(pid: u32, mapped: Mapped, path: &Path) -> io::Result<File> {
    let mapping = format!("/proc/{pid}/map_files/{}", mapped.name());
    match open(Path::new(&mapping), libc::O_PATH) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {}
        opened => return opened,
    }
    let root = open(Path::new(&format!("/proc/{pid}/root")), libc::O_PATH)?;
    let path = path.strip_prefix("/").unwrap_or(path);
    let path = CString::new(path.as_os_str().as_bytes())?;
    let flags = libc::O_PATH | libc::O_CLOEXEC;
    // RESOLVE_CACHED asks no file system, which could keep this thread waiting. The path of a file
    // that was mapped a moment ago is in the kernel's memory.
    let resolve = libc::RESOLVE_CACHED | libc::RESOLVE_IN_ROOT | libc::RESOLVE_NO_SYMLINKS;
    // SAFETY: the structure has whole numbers only, of which zeros are values.
    let mut how = unsafe { std::mem::zeroed::<libc::open_how>() };
    how.flags = u64::from(flags.cast_unsigned());
    how.resolve = resolve;
    // SAFETY: the descriptor is open, and the path and the structure live until the call returns.
    let opened = unsafe {
        let size = size_of::<libc::open_how>();
        let (root, path) = (root.as_raw_fd(), path.as_ptr());
        libc::syscall(libc::SYS_openat2, root, path, &raw const how, size)
    };
    let opened = i32::try_from(opened).unwrap_or(-1);
    if opened < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call gave this descriptor, which is new.
    let file = unsafe { File::from_raw_fd(opened) };
    let about = about(&file)?;
    let device = (about.stx_dev_major, about.stx_dev_minor);
    if mapped.is_of(device, about.stx_ino) {
        return Ok(file);
    }
    Err(io::ErrorKind::PermissionDenied.into())
}

/// The identity of an ordinary file; none for anything else.
fn id(file: &File) -> io::Result<Option<FileId>> {
    let about = about(file)?;
    let device = u64::from(about.stx_dev_major) << 32 | u64::from(about.stx_dev_minor);
    let changed = about.stx_mtime;
    let id = (device, about.stx_ino, changed.tv_sec, changed.tv_nsec);
    let is_file = u32::from(about.stx_mode) & libc::S_IFMT == libc::S_IFREG;
    Ok(is_file.then_some(id))
}

/// The file's statx(2), without asking a file system in user space.
fn about(file: &File) -> io::Result<libc::statx> {
    let flags = libc::AT_EMPTY_PATH | libc::AT_STATX_DONT_SYNC;
    // SAFETY: the descriptor is open, the path is empty and ends, and the kernel writes to one
    // structure of which zeros are a value.
    let (result, about) = unsafe {
        let mut about = std::mem::zeroed::<libc::statx>();
        let path = c"".as_ptr();
        let mask = libc::STATX_BASIC_STATS;
        let result = libc::statx(file.as_raw_fd(), path, flags, mask, &raw mut about);
        (result, about)
    };
    if result == 0 {
        Ok(about)
    } else {
        Err(io::Error::last_os_error())
    }
}

/// A file to be mapped, as `/proc/PID/map_files` will name it: on stacked file systems a mapping
/// names another one than its path does. So it is mapped here for a moment.
fn as_mapped(path: &Path) -> Option<(File, FileId)> {
    let file = open(path, libc::O_RDONLY).ok()?;
    // SAFETY: sysconf has no preconditions.
    let page = usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).ok()?;
    // SAFETY: a new mapping where the kernel has room; nothing reads it.
    let at = unsafe {
        let (access, kind) = (libc::PROT_READ, libc::MAP_PRIVATE);
        let fd = file.as_raw_fd();
        libc::mmap(std::ptr::null_mut(), page, access, kind, fd, 0)
    };
    if at == libc::MAP_FAILED {
        return None;
    }
    let begin = at.addr();
    let named = format!("/proc/self/map_files/{begin:x}-{:x}", begin + page);
    let named = open(Path::new(&named), libc::O_PATH);
    // SAFETY: the region was mapped above, and no other code knows of it.
    unsafe { libc::munmap(at, page) };
    let id = id(&named.ok()?).ok()??;
    Some((file, id))
}
