//! The holders of reservations, and their form on a command line.

use std::fmt;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::str::FromStr;

use onbeat_model::{Bandwidth, Span};

use super::SHORTEST_RUNTIME;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Whom {
    /// A process: all its threads, and those of the processes that it starts from now on.
    Process(u32),
    /// A control group of version 2, by its id: every thread in it or below it.
    ControlGroup(u64),
}

impl fmt::Display for Whom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Process(pid) => write!(f, "process {pid}"),
            Self::ControlGroup(id) => write!(f, "control group {id}"),
        }
    }
}

/// CPU time in every period, before a deadline: a reservation that may be of more than one CPU, as
/// several can give it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupBudget {
    pub runtime: Span,
    /// The time from a period's begin until the runtime is given.
    pub deadline: Span,
    pub period: Span,
}

impl GroupBudget {
    /// `runtime` in every `period`, before `deadline`.
    /// Fails unless 0 < runtime and 0 < deadline <= period.
    pub fn new(runtime: Span, deadline: Span, period: Span) -> Result<Self, NoBudget> {
        let budget = Self {
            runtime,
            deadline,
            period,
        };
        let is_one = !runtime.is_zero() && !deadline.is_zero() && deadline <= period;
        is_one.then_some(budget).ok_or(NoBudget(budget))
    }

    /// The same with a part of the runtime, and with at least the shortest one.
    pub(super) fn scaled(self, part: f64) -> Self {
        let runtime = self.runtime.as_ns() as f64 * part;
        let runtime = Span::from_ns(runtime as u64).max(SHORTEST_RUNTIME);
        Self {
            runtime: runtime.min(self.runtime),
            ..self
        }
    }

    pub fn bandwidth(&self) -> Bandwidth {
        Bandwidth::of(self.runtime, self.period)
    }
}

impl fmt::Display for GroupBudget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.runtime)?;
        if self.deadline < self.period {
            write!(f, " within {}", self.deadline)?;
        }
        write!(f, " every {}", self.period)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0}: a runtime above zero is needed, and a deadline above zero that is no longer than the period"
)]
pub struct NoBudget(GroupBudget);

/// A group and what is to be reserved for it: `PID=6ms/20ms`, or `/sys/fs/cgroup/...=6ms/20ms`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupReservation {
    pub whom: Whom,
    pub budget: GroupBudget,
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseGroupError {
    #[error(
        "a process or the folder of a control group is expected, and RUNTIME/PERIOD, as in 1234=6ms/20ms"
    )]
    Form,
    #[error("'{0}' is no time, as in 6ms")]
    Time(String),
    #[error(transparent)]
    Budget(#[from] NoBudget),
    #[error("{0} is no control group of version 2")]
    NoControlGroup(String),
}

impl FromStr for GroupReservation {
    type Err = ParseGroupError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (whom, times) = text.rsplit_once('=').ok_or(ParseGroupError::Form)?;
        let (runtime, period) = times.split_once('/').ok_or(ParseGroupError::Form)?;
        let time = |text: &str| -> Result<Span, ParseGroupError> {
            text.parse()
                .map_err(|_| ParseGroupError::Time(text.to_owned()))
        };
        let (runtime, period) = (time(runtime)?, time(period)?);
        let budget = GroupBudget::new(runtime, period, period)?;
        let whom = if whom.starts_with('/') {
            Whom::ControlGroup(id_of(Path::new(whom))?)
        } else {
            Whom::Process(whom.parse().map_err(|_| ParseGroupError::Form)?)
        };
        Ok(Self { whom, budget })
    }
}

/// The kernel's id of a control group is the number of its folder's inode.
fn id_of(folder: &Path) -> Result<u64, ParseGroupError> {
    let metadata = fs::metadata(folder).ok();
    metadata
        .filter(|_| folder.join("cgroup.procs").is_file())
        .map(|metadata| metadata.ino())
        .ok_or_else(|| ParseGroupError::NoControlGroup(folder.display().to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_a_process_or_a_control_group_and_what_it_is_to_have() {
        let group: GroupReservation = "1234=6ms/20ms".parse().unwrap();
        assert_eq!(group.whom, Whom::Process(1234));
        let [runtime, period] = [6, 20].map(Span::from_ms);
        let budget = GroupBudget::new(runtime, period, period).unwrap();
        assert_eq!(group.budget, budget);
        let of_two_cpus: GroupReservation = "1234=30ms/20ms".parse().unwrap();
        assert_eq!(of_two_cpus.budget.bandwidth(), Bandwidth::from_cpus(1.5));
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("cgroup.procs"), "").unwrap();
        let text = format!("{}=500us/1ms", folder.path().display());
        let group: GroupReservation = text.parse().unwrap();
        assert_eq!(
            group.whom,
            Whom::ControlGroup(fs::metadata(folder.path()).unwrap().ino())
        );
    }

    #[test]
    fn what_is_no_group_is_answered_with_what_is_wrong() {
        let wrong = |text: &str| text.parse::<GroupReservation>().unwrap_err();
        assert_eq!(wrong("1234"), ParseGroupError::Form);
        assert_eq!(wrong("1234=6ms"), ParseGroupError::Form);
        assert_eq!(wrong("init=6ms/20ms"), ParseGroupError::Form);
        assert_eq!(wrong("1=6/20ms"), ParseGroupError::Time("6".to_owned()));
        assert!(matches!(wrong("1=0ms/20ms"), ParseGroupError::Budget(_)));
        assert!(matches!(
            wrong("/nowhere=6ms/20ms"),
            ParseGroupError::NoControlGroup(_)
        ));
    }
}
