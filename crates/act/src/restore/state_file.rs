//! Writes the state file ahead of every change.
//!
//! One file per onbeat process. It has to outlive the process, but not the boot, after which none
//! of its tasks exist: what is written is safe from a crash of onbeat once the kernel has it, and
//! is not forced to the disk, which would hold up the loop before each change. If it cannot be
//! written, the change is not made; a half-written record is overwritten by the next.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use onbeat_model::{Refusal, TaskId};
use serde::{Deserialize, Serialize};

use crate::attributes::Attributes;
use crate::cpufreq::domain::DomainSettings;
use crate::server::shrunk;
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

// JSON lines, each complete in itself. A record is written before the change it speaks of, so a
// file that ends anywhere still tells of every change that can have happened: a last line without
// its newline belongs to a change that was never made. The text is not trusted: a line that is no
// record is counted and passed over.

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Priority {
    /// SCHED_RR of this priority, from 1 to 99.
    RealTime(u32),
    /// SCHED_OTHER of this nice level, from -20 to 19.
    Nice(i32),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Given {
    pub priority: Priority,
    /// The user who is charged for it.
    pub payer: u32,
    /// The user whose task it was then.
    pub owner: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "snake_case")]
pub enum StateRecord {
    Owner(Owner),
    /// About to be done: `task` had `before` when it was first touched, and gets `set`.
    Change {
        task: TaskId,
        /// The leader of its process, if it is not the leader itself: a thread that executes
        /// another program takes the leader's number.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        leader: Option<TaskId>,
        before: Attributes,
        set: Attributes,
    },
    /// A client of RealtimeKit asked for a priority for `task`: the next service takes it over. The
    /// change itself is a record of its own, and may come later.
    Given {
        task: TaskId,
        given: Given,
    },
    /// The kernel refused the last change of `task`.
    Refused {
        task: TaskId,
    },
    /// `task` needs nothing any more: given back, gone, or taken over by another program.
    Done {
        task: TaskId,
    },
    /// About to be done: the CPUs of a domain of cpufreq had `before` when their speed was first
    /// set, and get `set`.
    Speed {
        domain: u32,
        before: DomainSettings,
        set: DomainSettings,
    },
    SpeedDone {
        domain: u32,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    pub process: TaskId,
    /// `/proc/sys/kernel/random/boot_id`: task numbers and start times mean nothing after a reboot.
    pub boot_id: String,
}

/// The settings of a task, or of a domain of cpufreq, that a state file still has to put back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SavedChange<S> {
    pub leader: Option<TaskId>,
    pub before: S,
    /// The last settings that it is known to have been given; none if the first change may not have
    /// happened.
    pub in_force: Option<S>,
    /// The settings that it was about to be given; none if the kernel is known to have refused
    /// that.
    pub pending: Option<S>,
}

pub type TaskChange = SavedChange<Attributes>;
pub type SpeedChange = SavedChange<DomainSettings>;

impl<S> SavedChange<S> {
    const fn new(leader: Option<TaskId>, before: S) -> Self {
        Self {
            leader,
            before,
            in_force: None,
            pending: None,
        }
    }

    /// That another change follows, and was not preceded by a refusal, says that the last one
    /// happened.
    fn announce(&mut self, set: S) {
        self.in_force = self.pending.take().or(self.in_force.take());
        self.pending = Some(set);
    }

    pub(crate) fn given(&self) -> impl Iterator<Item = &S> + Clone {
        [&self.in_force, &self.pending].into_iter().flatten()
    }
}

impl TaskChange {
    /// Whether onbeat, by this record, can have left the task with `now`: with one of the last two
    /// settings, or in the middle of giving it back.
    #[must_use]
    pub fn can_have_left(&self, now: &Attributes) -> bool {
        self.given()
            .any(|set| set == now || shrunk(set).as_ref() == Some(now))
    }
}

impl SpeedChange {
    #[must_use]
    pub fn can_have_left(&self, now: &DomainSettings) -> bool {
        now.are_on_the_way(self.given().chain([&self.before]))
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SavedState {
    /// The writer, if the first line survived.
    pub owner: Option<Owner>,
    pub changes: BTreeMap<TaskId, TaskChange>,
    /// The requests for some of them and for tasks that are to be changed later.
    pub given: BTreeMap<TaskId, Given>,
    /// The domains of cpufreq that are not done with.
    pub speeds: BTreeMap<u32, SpeedChange>,
    pub damaged_lines: usize,
}

impl SavedState {
    pub fn apply(&mut self, record: StateRecord) {
        match record {
            StateRecord::Owner(owner) => self.owner = Some(owner),
            StateRecord::Change {
                task,
                leader,
                before,
                set,
            } => {
                let change = self.changes.entry(task);
                let change = change.or_insert(SavedChange::new(leader, before));
                change.announce(set);
            }
            StateRecord::Given { task, given } => {
                self.given.insert(task, given);
            }
            StateRecord::Refused { task } => {
                if let Some(change) = self.changes.get_mut(&task) {
                    change.pending = None;
                    if change.in_force.is_none() {
                        self.changes.remove(&task);
                    }
                }
            }
            StateRecord::Done { task } => {
                self.changes.remove(&task);
                self.given.remove(&task);
            }
            StateRecord::Speed {
                domain,
                before,
                set,
            } => {
                let change = self.speeds.entry(domain);
                let change = change.or_insert(SavedChange::new(None, before));
                change.announce(set);
            }
            StateRecord::SpeedDone { domain } => {
                self.speeds.remove(&domain);
            }
        }
    }

    #[must_use]
    pub fn is_done(&self) -> bool {
        self.changes.is_empty() && self.given.is_empty() && self.speeds.is_empty()
    }

    pub(crate) fn to_records(&self) -> Vec<StateRecord> {
        let owner = self.owner.iter().cloned().map(StateRecord::Owner);
        let given = self.given.iter();
        let given = given.map(|(&task, &given)| StateRecord::Given { task, given });
        let changes = self.changes.iter().flat_map(|(&task, change)| {
            let TaskChange { leader, before, .. } = *change;
            change.given().map(move |&set| StateRecord::Change {
                task,
                leader,
                before,
                set,
            })
        });
        let speeds = self.speeds.iter().flat_map(|(&domain, change)| {
            change.given().map(move |set| StateRecord::Speed {
                domain,
                before: change.before.clone(),
                set: set.clone(),
            })
        });
        let tasks = owner.chain(given).chain(changes);
        tasks.chain(speeds).collect()
    }
}

#[must_use]
pub fn parse_state(bytes: &[u8]) -> SavedState {
    let mut state = SavedState::default();
    // The bytes after the last newline are a record that was being written.
    let complete = match bytes.iter().rposition(|&byte| byte == b'\n') {
        Some(end) => bytes.get(..end).unwrap_or_default(),
        None => return state,
    };
    for line in complete.split(|&byte| byte == b'\n') {
        match serde_json::from_slice(line) {
            Ok(record) => state.apply(record),
            Err(_) => state.damaged_lines += 1,
        }
    }
    state
}
