//! Writes the state file ahead of every change.
//!
//! One file per onbeat process. It has to outlive the process, but not the boot, after which none
//! of its tasks exist: what is written is safe from a crash of onbeat once the kernel has it, and
//! is not forced to the disk, which would hold up the loop before each change. If it cannot be
//! written, the change is not made; a half-written record is overwritten by the next.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use onbeat_model::{Refusal, TaskId};

use super::state::{Owner, SavedState, StateRecord};
use crate::attributes::Attributes;
use crate::task;

/// Records beyond what is needed, after which the file is written anew.
const SLACK: usize = 1000;

/// This process's state file. Removed when it is dropped and nothing is left to put back.
#[derive(Debug)]
pub struct StateFile {
    path: PathBuf,
    file: File,
    length: u64,
    records: usize,
    state: SavedState,
}

impl StateFile {
    /// Where state files are kept unless said otherwise: `/run/onbeat` for root, else
    /// `$XDG_RUNTIME_DIR/onbeat`; none if a user has no such directory.
    #[must_use]
    pub fn default_directory() -> Option<PathBuf> {
        // SAFETY: geteuid takes nothing and always succeeds.
        if unsafe { libc::geteuid() } == 0 {
            return Some(PathBuf::from("/run/onbeat"));
        }
        let base = std::env::var_os("XDG_RUNTIME_DIR").filter(|base| !base.is_empty())?;
        Some(Path::new(&base).join("onbeat"))
    }

    /// Opens a new state file of this process in `directory`, which is made if need be.
    pub fn create(directory: &Path) -> io::Result<Self> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(directory)?;
        let thread = task::own()?;
        let process = task::identify(std::process::id()).unwrap_or(thread);
        let owner = Owner {
            process,
            boot_id: boot_id()?,
        };
        let state = SavedState {
            owner: Some(owner),
            ..SavedState::default()
        };
        let (path, file) = open_new(directory, process)?;
        let mut new = Self {
            path,
            file,
            length: 0,
            records: 0,
            state: SavedState::default(),
        };
        for record in state.to_records() {
            new.write(record)?;
        }
        Ok(new)
    }

    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// To be called before `task`, which had `before` when it was first touched, is given `set`;
    /// with the `leader` of its process if that is another task.
    pub(crate) fn announce(
        &mut self,
        task: TaskId,
        leader: Option<TaskId>,
        before: Attributes,
        set: Attributes,
    ) -> Result<(), Refusal> {
        let change = StateRecord::Change {
            task,
            leader,
            before,
            set,
        };
        self.write(change)
            .map_err(|error| self.unwritten(task, &error))
    }

    /// The refusal of a change of `task` that could not be written.
    pub(crate) fn unwritten(&self, task: TaskId, error: &io::Error) -> Refusal {
        Refusal::Other(format!(
            "task {task} is left as it is, because the state file {} could not be written \
             ({error}): free some space there, or choose another directory",
            self.path.display()
        ))
    }

    /// To be called before what the record tells of is done.
    /// Fails if it could not be written: a change must not be made then. Without the record of its
    /// end, restoring finds out by itself.
    pub fn write(&mut self, record: StateRecord) -> io::Result<()> {
        let state = &self.state;
        let needed = 2 * (state.changes.len() + state.speeds.len()) + state.given.len() + 1;
        if self.records > needed + SLACK {
            self.compact()?;
        }
        let bytes = line(&record)?;
        self.file.write_all_at(&bytes, self.length)?;
        self.length += bytes.len() as u64;
        self.records += 1;
        self.state.apply(record);
        Ok(())
    }

    /// Writes a file of the records still needed beside the present one and puts it in its place.
    fn compact(&mut self) -> io::Result<()> {
        let records = self.state.to_records();
        let mut bytes = Vec::new();
        for record in &records {
            bytes.extend(line(record)?);
        }
        let beside = self.path.with_extension("new");
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&beside)?;
        file.write_all_at(&bytes, 0)?;
        fs::rename(&beside, &self.path)?;
        self.file = file;
        self.length = bytes.len() as u64;
        self.records = records.len();
        Ok(())
    }
}

impl Drop for StateFile {
    fn drop(&mut self) {
        if self.state.is_done() {
            // A file left behind says that nothing is to be done: harmless.
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn line(record: &StateRecord) -> io::Result<Vec<u8>> {
    let mut bytes = serde_json::to_vec(record)?;
    bytes.push(b'\n');
    Ok(bytes)
}

fn open_new(directory: &Path, process: TaskId) -> io::Result<(PathBuf, File)> {
    let mut number = 0;
    loop {
        let name = format!("{}-{}-{number}.jsonl", process.tid, process.started_ticks);
        let path = directory.join(name);
        let opened = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path);
        match opened {
            Ok(file) => return Ok((path, file)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
            Err(error) => return Err(error),
        }
    }
}

pub(crate) fn owner_by_name(path: &Path) -> Option<TaskId> {
    let mut numbers = path.file_stem()?.to_str()?.split('-');
    Some(TaskId {
        tid: numbers.next()?.parse().ok()?,
        started_ticks: numbers.next()?.parse().ok()?,
    })
}

pub(super) fn boot_id() -> io::Result<String> {
    let text = fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
    Ok(text.trim().to_owned())
}
