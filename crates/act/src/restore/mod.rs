//! The way back after a crash: undoes what the state files of dead onbeat processes say.
//!
//! A task is put back only if it is still the same task, and still has what onbeat left it with:
//! whatever an administrator set since stays.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use onbeat_model::{Instant, Span, TaskId};

mod state_file;

pub(crate) use state_file::owner_by_name;
pub use state_file::{
    Given, Owner, Priority, SavedState, SpeedChange, StateFile, StateRecord, TaskChange,
    parse_state,
};

use crate::attributes::{self, Attributes, Policy};
use crate::cpufreq::domain::{Domain, DomainError, DomainSettings, Tree};
use crate::server::{Leaving, Server, leave};
use crate::task;
use onbeat_kernel::{clock, wait};

/// How long throttled tasks are waited for, all together: users choose their periods, and the next
/// onbeat waits for this one. A task with a period of up to half of it is never put back while it
/// is throttled, unless it never runs.
const PATIENCE: Span = Span::from_secs(2);

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome<S = Attributes> {
    Restored,
    AlreadyBack,
    Gone,
    /// Another program changed it since (`now`): left as it is.
    LeftAlone {
        now: S,
    },
    Failed {
        error: String,
    },
}

impl<S: fmt::Display> fmt::Display for Outcome<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Restored => f.write_str("put back"),
            Self::AlreadyBack => f.write_str("already as it was before"),
            Self::Gone => f.write_str("no longer exists"),
            Self::LeftAlone { now } => {
                write!(
                    f,
                    "left as it is: another program has set it to {now} since onbeat"
                )
            }
            Self::Failed { error } => write!(f, "not put back: {error}"),
        }
    }
}

impl<S> Outcome<S> {
    #[must_use]
    pub const fn failed(&self) -> bool {
        matches!(self, Self::Failed { .. })
    }
}

#[derive(Debug, thiserror::Error)]
pub enum Skipped {
    #[error("onbeat process {0} is still running and puts its tasks back itself: end it first")]
    OwnerLives(TaskId),
    #[error("it belongs to user {0}, who is neither root nor you: remove it if it is not wanted")]
    Foreign(u32),
    #[error("it has what clients of RealtimeKit were given: the next service takes that over")]
    Given,
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl Skipped {
    /// Another process has restored what it says, and removed it meanwhile: a guard, for one.
    fn is_by_another(&self) -> bool {
        matches!(self, Self::Io(error) if error.kind() == io::ErrorKind::NotFound)
    }
}

/// A task that a client of RealtimeKit asked a priority for, as a state file tells of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Left {
    pub(crate) task: TaskId,
    pub(crate) given: Given,
    pub(crate) change: Option<TaskChange>,
}

#[derive(Debug, Default)]
pub struct RestoreReport {
    /// Every task that keeps its priority, because this onbeat has taken it over.
    pub kept: Vec<TaskId>,
    pub tasks: Vec<(TaskId, Outcome)>,
    pub domains: Vec<(u32, Outcome<DomainSettings>)>,
    pub skipped: Vec<(PathBuf, Skipped)>,
    pub damaged_lines: usize,
}

impl RestoreReport {
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.skipped.is_empty()
            && !self.tasks.iter().any(|(_, outcome)| outcome.failed())
            && !self.domains.iter().any(|(_, outcome)| outcome.failed())
    }

    /// The outcome for `task` by one more state file. The settings below a reservation that could
    /// not be given back are not another program's choice: it is put back once the reservation has
    /// gone.
    fn after_what_failed(&self, task: TaskId, outcome: Outcome) -> Outcome {
        let covers = |now: &Attributes| matches!(now.policy, Policy::Deadline(_));
        let mut earlier = self.tasks.iter();
        match outcome {
            Outcome::LeftAlone { now }
                if covers(&now) && earlier.any(|(other, was)| *other == task && was.failed()) =>
            {
                Outcome::Failed {
                    error: format!("it still has {now} above that"),
                }
            }
            outcome => outcome,
        }
    }
}

/// Undoes what the state files in `directory` say, and removes those that are done with. Files of
/// living onbeat processes are passed over, unless `force`. No directory is nothing to do.
pub fn restore(directory: &Path, force: bool) -> io::Result<RestoreReport> {
    restore_in(directory, &Tree::default(), force)
}

/// The same, with cpufreq's files in another place.
pub fn restore_in(directory: &Path, tree: &Tree, force: bool) -> io::Result<RestoreReport> {
    restore_but(
        directory,
        tree,
        if force { Files::All } else { Files::OfDead },
        |_| false,
    )
}

/// The same, but for files that tell of priorities of RealtimeKit's clients.
pub fn restore_but_given(directory: &Path) -> io::Result<RestoreReport> {
    restore_but(directory, &Tree::default(), Files::OfDeadButGiven, |_| {
        false
    })
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Files {
    OfDead,
    /// These, but for those that tell of priorities of RealtimeKit's clients.
    OfDeadButGiven,
    All,
}

/// The same, but for tasks that `takes_over` says yes to: they keep what they have.
pub(crate) fn restore_but(
    directory: &Path,
    tree: &Tree,
    files: Files,
    mut takes_over: impl FnMut(Left) -> bool,
) -> io::Result<RestoreReport> {
    let mut report = RestoreReport::default();
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(report),
        Err(error) => return Err(error),
    };
    let paths: io::Result<Vec<PathBuf>> = entries.map(|entry| Ok(entry?.path())).collect();
    let mut paths = paths?;
    // In the order in which each onbeat began to change things.
    paths.sort_unstable();
    let until = clock::now() + PATIENCE;
    for path in paths {
        if path
            .extension()
            .is_some_and(|extension| extension == "jsonl")
            && let Err(skipped) =
                restore_file(&path, tree, files, until, &mut takes_over, &mut report)
            && !skipped.is_by_another()
        {
            report.skipped.push((path, skipped));
        }
    }
    Ok(report)
}

fn restore_file(
    path: &Path,
    tree: &Tree,
    files: Files,
    until: Instant,
    takes_over: &mut impl FnMut(Left) -> bool,
    report: &mut RestoreReport,
) -> Result<(), Skipped> {
    let user = fs::symlink_metadata(path)?.uid();
    // SAFETY: geteuid takes nothing and always succeeds.
    if user != 0 && user != unsafe { libc::geteuid() } {
        return Err(Skipped::Foreign(user));
    }
    let mut state = parse_state(&fs::read(path)?);
    if files == Files::OfDeadButGiven && !state.given.is_empty() {
        return Err(Skipped::Given);
    }
    report.damaged_lines += state.damaged_lines;
    let this_boot = match &state.owner {
        Some(owner) => owner.boot_id == state_file::boot_id()?,
        None => true,
    };
    let mut complete = true;
    if this_boot {
        let owner = state.owner.as_ref().map(|owner| owner.process);
        // Its first record may not be written yet.
        let owner = owner.or_else(|| owner_by_name(path));
        if let Some(owner) = owner
            && files != Files::All
            && !task::has_ended(owner)
        {
            return Err(Skipped::OwnerLives(owner));
        }
        for (&task, &given) in &state.given {
            let change = state.changes.get(&task).copied();
            if takes_over(Left {
                task,
                given,
                change,
            }) {
                state.changes.remove(&task);
                report.kept.push(task);
            }
        }
        for (task, outcome) in put_all_back(state.changes, until) {
            let outcome = report.after_what_failed(task, outcome);
            complete &= !outcome.failed();
            report.tasks.push((task, outcome));
        }
        for (number, change) in state.speeds {
            let outcome = put_domain_back(&tree.domain(number), &change);
            complete &= !outcome.failed();
            report.domains.push((number, outcome));
        }
    } else {
        let gone = state.changes.into_keys().map(|task| (task, Outcome::Gone));
        report.tasks.extend(gone);
    }
    if complete {
        fs::remove_file(path)?;
        // The file that was being written anew when the crash came; most often there is none.
        let _ = fs::remove_file(path.with_extension("new"));
    }
    Ok(())
}

/// Puts all back, those that are throttled as soon as they are not, or when the patience is over: a
/// task that leaves throttled is at a disadvantage if it is reserved again soon.
fn put_all_back(
    mut changes: BTreeMap<TaskId, TaskChange>,
    until: Instant,
) -> BTreeMap<TaskId, Outcome> {
    let mut outcomes = BTreeMap::new();
    loop {
        let is_over = clock::now() >= until;
        changes.retain(|&task, change| {
            let Some(outcome) = put_back_wherever(task, change, is_over) else {
                return true;
            };
            outcomes.insert(task, outcome);
            false
        });
        if changes.is_empty() {
            return outcomes;
        }
        wait::sleep(Span::from_ms(1));
    }
}

/// A thread that has executed another program since is found as the leader of its process. None: it
/// is throttled.
fn put_back_wherever(task: TaskId, change: &TaskChange, is_over: bool) -> Option<Outcome> {
    let outcome = put_back(task, change, is_over)?;
    match (outcome, change.leader) {
        (Outcome::Gone, Some(leader)) => match put_back(leader, change, is_over)? {
            found @ (Outcome::Restored | Outcome::Failed { .. }) => Some(found),
            _ => Some(Outcome::Gone),
        },
        (outcome, _) => Some(outcome),
    }
}

/// None: the task is throttled, and the patience is not over.
fn put_back(task: TaskId, change: &TaskChange, is_over: bool) -> Option<Outcome> {
    if !task::is_alive(task) {
        return Some(Outcome::Gone);
    }
    let attempt = || -> io::Result<Option<Outcome>> {
        let now = Attributes::get(task.tid)?;
        if !task::is_alive(task) {
            return Ok(Some(Outcome::Gone));
        }
        if now == change.before {
            return Ok(Some(Outcome::AlreadyBack));
        }
        if !change.can_have_left(&now) {
            for set in change.given() {
                attributes::put_nice_back(task.tid, set, &change.before);
            }
            return Ok(Some(Outcome::LeftAlone {
                now: Attributes::get(task.tid)?,
            }));
        }
        let server = match now.policy {
            Policy::Deadline(_) => Server::read(task),
            _ => None,
        };
        if !is_over && server.is_some_and(|server| server.is_throttled()) {
            return Ok(None);
        }
        let asleep = task::is_asleep(task);
        let outcome = match leave(task, server, asleep, &now, &change.before)? {
            Leaving::Left => Outcome::Restored,
            Leaving::TakenOver(now) => Outcome::LeftAlone { now },
        };
        Ok(Some(outcome))
    };
    match attempt() {
        Ok(outcome) => outcome,
        Err(error) if error.raw_os_error() == Some(libc::ESRCH) => Some(Outcome::Gone),
        Err(error) => Some(Outcome::Failed {
            error: error.to_string(),
        }),
    }
}

fn put_domain_back(domain: &Domain, change: &SpeedChange) -> Outcome<DomainSettings> {
    if !domain.exists() {
        return Outcome::Gone;
    }
    let attempt = || -> Result<Outcome<DomainSettings>, DomainError> {
        let now = domain.settings()?;
        if !change.can_have_left(&now) {
            return Ok(Outcome::LeftAlone { now });
        }
        // Also if it tells what it had before: a change just before the crash may be on its way
        // yet.
        domain.set(&change.before, &now)?;
        Ok(if now == change.before {
            Outcome::AlreadyBack
        } else {
            Outcome::Restored
        })
    };
    attempt().unwrap_or_else(|error| Outcome::Failed {
        error: error.to_string(),
    })
}
