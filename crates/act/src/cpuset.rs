//! A root domain for each CPU, through cpusets of cgroup v2, and the way back.
//!
//! A reservation lives in a root domain, in which the kernel runs global EDF; a thread whose
//! affinity is narrower is refused. A cpuset that is a partition root makes a root domain of its
//! own, so with one for each CPU but the first EDF is partitioned. The first stays with the cgroups
//! there are, and with it everything that onbeat does not place: nothing else runs on the other
//! CPUs any more.
//!
//! Whole processes are placed, for cgroup v2 moves no less. Before each change the state file has
//! what was there before.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use onbeat_kernel::cpus;
use onbeat_model::TaskId;

use crate::restore::StateFile;
use crate::task;

/// Where cgroup v2 is mounted: alone, or beside version 1.
const MOUNTED: [&str; 2] = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"];

/// Why there are no partitions.
#[derive(Debug, thiserror::Error)]
pub enum CpusetError {
    /// No cgroup v2, or its cpuset controller is taken.
    #[error(
        "this machine has no cpuset controller in cgroup v2 (with version 1 mounted it is taken): boot with \
         cgroup_no_v1=cpuset, or leave enforcement.partition out"
    )]
    NoController,
    /// One CPU cannot be parted.
    #[error("there is one CPU only: leave enforcement.partition out")]
    OneCpu,
    /// The kernel made no partition.
    #[error("CPU {cpu} cannot be a partition of its own ({why}): leave enforcement.partition out")]
    Refused {
        /// Which.
        cpu: u32,
        /// The kernel's error.
        why: String,
    },
    /// A file could not be read or written.
    #[error("{path}: {source}")]
    File {
        /// Which.
        path: PathBuf,
        /// The kernel's error.
        source: io::Error,
    },
}

/// The partitions of this process, and who was moved where from.
#[derive(Debug)]
pub struct Partitions {
    state_file: StateFile,
    root: PathBuf,
    folders: Vec<PathBuf>,
    came_from: BTreeMap<TaskId, PathBuf>,
}

/// Where cgroup v2 with its cpuset controller is; none if it is not to be had.
#[must_use]
pub fn mounted() -> Option<PathBuf> {
    let has_cpuset = |root: &&&str| {
        let controllers = fs::read_to_string(Path::new(root).join("cgroup.controllers"));
        controllers.is_ok_and(|list| list.split_whitespace().any(|name| name == "cpuset"))
    };
    MOUNTED.iter().find(has_cpuset).map(PathBuf::from)
}

impl Partitions {
    /// Makes a partition of each CPU of this machine but the first, and writes to `state_file`
    /// before.
    ///
    /// # Errors
    /// See [`CpusetError`]; nothing is left behind.
    pub fn make(state_file: StateFile) -> Result<Self, CpusetError> {
        let root = mounted().ok_or(CpusetError::NoController)?;
        Self::make_at(&root, &cpus::online().unwrap_or_default(), state_file)
    }

    /// The same of `cpus`, below the cgroup `root`.
    ///
    /// # Errors
    /// See [`CpusetError`]; nothing is left behind.
    pub fn make_at(root: &Path, cpus: &[u32], state_file: StateFile) -> Result<Self, CpusetError> {
        let mut new = Self {
            state_file,
            root: root.to_owned(),
            folders: Vec::new(),
            came_from: BTreeMap::new(),
        };
        let Some((_, others)) = cpus.split_first().filter(|(_, others)| !others.is_empty()) else {
            return Err(CpusetError::OneCpu);
        };
        for &cpu in others {
            new.add(cpu)?;
        }
        Ok(new)
    }

    fn add(&mut self, cpu: u32) -> Result<(), CpusetError> {
        let folder = self
            .root
            .join(format!("onbeat-{}-cpu{cpu}", std::process::id()));
        let failed = |path: &Path| {
            let path = path.to_owned();
            |source| CpusetError::File { path, source }
        };
        self.state_file
            .partition(&folder)
            .map_err(failed(&folder))?;
        let control = self.root.join("cgroup.subtree_control");
        fs::write(&control, "+cpuset").map_err(failed(&control))?;
        fs::create_dir(&folder).map_err(failed(&folder))?;
        self.folders.push(folder.clone());
        let write = |name: &str, value: &str| {
            let path = folder.join(name);
            fs::write(&path, value).map_err(failed(&path))
        };
        write("cpuset.cpus", &cpu.to_string())?;
        write("cpuset.cpus.partition", "root")?;
        let path = folder.join("cpuset.cpus.partition");
        let became = fs::read_to_string(&path).map_err(failed(&path))?;
        match became.trim() {
            "root" => Ok(()),
            why => Err(CpusetError::Refused {
                cpu,
                why: why.to_owned(),
            }),
        }
    }

    /// How many there are, with what is left for all others.
    #[must_use]
    pub fn count(&self) -> usize {
        self.folders.len() + 1
    }

    /// Moves `process` to a partition; to the first, which is all that onbeat has not made, by
    /// moving it back.
    ///
    /// # Errors
    /// What the kernel says: `EBUSY` if the partition has no room for what the process has
    /// reserved.
    pub fn place(&mut self, process: TaskId, partition: usize) -> io::Result<()> {
        let to = match partition.checked_sub(1) {
            Some(index) => self.folders.get(index).ok_or(ErrorKind::NotFound)?.clone(),
            None => match self.came_from.get(&process) {
                Some(from) => from.clone(),
                None => return Ok(()),
            },
        };
        if !self.came_from.contains_key(&process) {
            let from = cgroup_of(&self.root, process)?;
            self.state_file.placed(process, &from)?;
            self.came_from.insert(process, from);
        }
        enter(&to, process)
    }
}

impl Drop for Partitions {
    /// Moves all processes back and removes the partitions. The state file keeps those that cannot
    /// be.
    fn drop(&mut self) {
        for (process, from) in std::mem::take(&mut self.came_from) {
            if move_back(process, &from).is_ok() {
                let _ = self.state_file.placed_done(process);
            }
        }
        for folder in std::mem::take(&mut self.folders) {
            if remove_partition(&folder).is_ok() {
                let _ = self.state_file.partition_done(&folder);
            }
        }
    }
}

/// The folder of the cgroup that `process` is in.
fn cgroup_of(root: &Path, process: TaskId) -> io::Result<PathBuf> {
    let text = fs::read_to_string(format!("/proc/{}/cgroup", process.tid))?;
    let path = text.lines().find_map(|line| line.strip_prefix("0::/"));
    path.map(|path| root.join(path))
        .ok_or_else(|| ErrorKind::NotFound.into())
}

fn enter(folder: &Path, process: TaskId) -> io::Result<()> {
    if !task::is_alive(process) {
        return Err(io::Error::from_raw_os_error(libc::ESRCH));
    }
    fs::write(folder.join("cgroup.procs"), process.tid.to_string())
}

/// Moves `process` back to where it was; that it is gone is as good.
pub(crate) fn move_back(process: TaskId, from: &Path) -> io::Result<()> {
    match enter(from, process) {
        Err(error) if error.raw_os_error() == Some(libc::ESRCH) => Ok(()),
        result => result,
    }
}

/// Removes a partition that this crate made. A process that is in it yet, a child of one that was
/// placed, goes to the cgroup above.
pub(crate) fn remove_partition(folder: &Path) -> io::Result<()> {
    let is_ours = folder
        .file_name()
        .is_some_and(|name| name.to_string_lossy().starts_with("onbeat-"));
    if !is_ours {
        return Err(ErrorKind::InvalidInput.into());
    }
    let Some(above) = folder.parent() else {
        return Err(ErrorKind::InvalidInput.into());
    };
    let inside = match fs::read_to_string(folder.join("cgroup.procs")) {
        Ok(inside) => inside,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    for pid in inside.lines() {
        let _ = fs::write(above.join("cgroup.procs"), pid);
    }
    fs::remove_dir(folder)
}
