//! A scheduler that is in force: what it counts, what it knows, and how it ended.

use std::ops::Range;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use libbpf_rs::{Link, MapCore, MapFlags, Object, ProgramInput};

use crate::Error;
use crate::kernel;
use crate::layout::{Layout, Value};
use crate::opened::{OPERATIONS, OUTCOME, is_section};

#[derive(Debug)]
pub(crate) struct Layouts {
    pub(crate) statistics: Layout,
    pub(crate) task: Layout,
    pub(crate) machine: Layout,
}

/// In force for as long as it is held.
pub struct Running {
    name: &'static str,
    /// Before the object, which these need.
    link: Option<Link>,
    _listens: Vec<Link>,
    object: Object,
    layouts: Layouts,
}

impl std::fmt::Debug for Running {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Running")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchedulerOutcome {
    pub reason: String,
    /// More about it; may be empty.
    pub message: String,
    /// It was ended because it did something wrong.
    pub is_failure: bool,
}

/// From the kernel's enum scx_exit_kind: these and above are errors.
const SCX_EXIT_ERROR: u64 = 1024;

impl Running {
    pub(crate) fn attach(
        name: &'static str,
        mut object: Object,
        layouts: Layouts,
    ) -> Result<Self, Error> {
        let link = object
            .maps_mut()
            .find(|map| map.name() == OPERATIONS)
            .ok_or(Error::Malformed {
                name,
                what: "operations",
            })?
            .attach_struct_ops()
            .map_err(|error| match kernel::status().and_then(|s| s.scheduler) {
                Some(name) => Error::OtherLoaded { name },
                None => Error::loading(name, error),
            })?;
        let listens = object
            .progs_mut()
            .filter(|program| program.section().as_encoded_bytes().starts_with(b"tp_btf/"))
            .map(|program| program.attach())
            .collect::<Result<_, _>>()
            .map_err(|error| Error::loading(name, error))?;
        Ok(Self {
            name,
            link: Some(link),
            _listens: listens,
            object,
            layouts,
        })
    }

    pub const fn name(&self) -> &'static str {
        self.name
    }

    pub fn statistics(&self) -> Result<Vec<Value>, Error> {
        let map = self.object.maps().find(|map| map.name() == "statistics");
        let per_cpu = match map {
            Some(map) => map
                .lookup_percpu(&0_u32.to_ne_bytes(), MapFlags::ANY)
                .map_err(Error::kernel("read the statistics"))?,
            None => None,
        };
        let mut total = self.layouts.statistics.read(&[0; 4096]);
        for bytes in per_cpu.unwrap_or_default() {
            for (sum, own) in total.iter_mut().zip(self.layouts.statistics.read(&bytes)) {
                sum.value += own.value;
            }
        }
        Ok(total)
    }

    /// The state that the rules keep for all tasks together.
    pub fn machine(&self) -> Vec<Value> {
        self.section(".bss")
            .map(|bytes| self.layouts.machine.read(&bytes))
            .unwrap_or_default()
    }

    /// The state that the rules keep for the thread `tid`; none if they know no such thread.
    pub fn task(&self, tid: u32) -> Option<Vec<Value>> {
        let thread = open_thread(tid)?;
        let map = self.object.maps().find(|map| map.name() == "tasks")?;
        let bytes = map
            .lookup(&thread.as_raw_fd().to_ne_bytes(), MapFlags::ANY)
            .ok()??;
        Some(self.layouts.task.read(&bytes))
    }

    pub fn outcome(&self) -> Option<SchedulerOutcome> {
        read_outcome(&self.section(OUTCOME)?)
    }

    pub const fn object(&mut self) -> &mut Object {
        &mut self.object
    }

    /// Has its program `name` read and write `call`, and gives back what that returns.
    ///
    /// # Safety
    /// `C` is a plain C structure without padding, for which all bytes are valid.
    pub(crate) unsafe fn call<C>(
        &mut self,
        name: &'static str,
        call: &mut C,
    ) -> Result<u32, Error> {
        let program = self
            .object
            .progs_mut()
            .find(|program| program.name() == name)
            .ok_or(Error::Malformed {
                name: self.name,
                what: name,
            })?;
        // SAFETY: the caller's promise; `call` is exclusively borrowed.
        let bytes = unsafe {
            std::slice::from_raw_parts_mut((&raw mut *call).cast::<u8>(), size_of::<C>())
        };
        let input = ProgramInput {
            context_in: Some(bytes),
            ..ProgramInput::default()
        };
        let output = program.test_run(input);
        Ok(output
            .map_err(Error::kernel("talk to the scheduler"))?
            .return_value)
    }

    /// Ends it, and waits until the kernel is back at its own scheduler.
    pub fn stop(mut self) -> Option<SchedulerOutcome> {
        drop(self.link.take());
        self.outcome()
    }

    fn section(&self, section: &str) -> Option<Vec<u8>> {
        let map = self
            .object
            .maps()
            .find(|map| is_section(map.name(), section))?;
        map.lookup(&0_u32.to_ne_bytes(), MapFlags::ANY).ok()?
    }
}

/// A `struct outcome` of `schedulers/common/scheduler.bpf.h`; none while the scheduler runs.
fn read_outcome(bytes: &[u8]) -> Option<SchedulerOutcome> {
    let kind = u64::from_ne_bytes(*bytes.first_chunk()?);
    let text = |place: Range<usize>| {
        let text = bytes.get(place).unwrap_or_default();
        let text = text.split(|&byte| byte == 0).next().unwrap_or_default();
        String::from_utf8_lossy(text).into_owned()
    };
    (kind != 0).then(|| SchedulerOutcome {
        reason: text(16..80),
        message: text(80..336),
        is_failure: kind >= SCX_EXIT_ERROR,
    })
}

/// A descriptor of one thread; `PIDFD_THREAD` is `O_EXCL`.
fn open_thread(tid: u32) -> Option<OwnedFd> {
    // SAFETY: a plain system call; no other code owns the descriptor that it returns.
    unsafe {
        let fd = libc::syscall(libc::SYS_pidfd_open, tid, libc::O_EXCL);
        let fd = i32::try_from(fd).ok().filter(|fd| *fd >= 0)?;
        Some(OwnedFd::from_raw_fd(fd))
    }
}
