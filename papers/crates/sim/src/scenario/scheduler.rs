//! The scheduler: the policy that a scenario names, with its knobs.

use super::TaskGroup;
use super::file::{PolicyKey, ScenarioFile};
use crate::CpuIndex;
use crate::policy::grace::{GraceClass, GraceSettings};

#[derive(Clone, Debug, Default, PartialEq)]
pub enum ScenarioScheduler {
    #[default]
    Linux,
    Grace(GraceSettings),
    Linux24,
    Best,
    Berate,
}

impl ScenarioScheduler {
    /// The scheduler that `file` names; the error says what to write instead.
    pub(super) fn of(file: &ScenarioFile) -> Result<Self, String> {
        let policy = file.policy.as_ref().map(|policy| *policy.get_ref());
        let policy = policy.unwrap_or_default();
        if policy != PolicyKey::Grace && file.grace.is_some() {
            return Err(
                "[grace] is for another policy: write policy = \"grace\" at the top".into(),
            );
        }
        if policy != PolicyKey::Linux && (file.onbeat.is_some() || file.feedback.is_some()) {
            return Err(
                "only the policy linux has reservations: leave out [onbeat] and [feedback]".into(),
            );
        }
        let is_partitioned = file.machine.scheduling == super::file::Scheduling::Partitioned;
        let scheduler = match policy {
            PolicyKey::Linux => return Ok(Self::Linux),
            PolicyKey::Grace if *file.machine.cpus.get_ref() > 1 && !is_partitioned => {
                return Err(
                    "under the policy grace each task has its CPU: write scheduling = \
                     \"partitioned\" under [machine]"
                        .into(),
                );
            }
            PolicyKey::Grace => {
                let written = file.grace.as_ref().map(|grace| grace.get_ref().clone());
                let settings = written.unwrap_or_default();
                checked(&settings)?;
                return Ok(Self::Grace(settings));
            }
            PolicyKey::Linux24 => Self::Linux24,
            PolicyKey::Best => Self::Best,
            PolicyKey::Berate => Self::Berate,
        };
        if is_partitioned {
            return Err(
                "this policy has one queue for all CPUs: leave out scheduling under [machine]"
                    .into(),
            );
        }
        Ok(scheduler)
    }
}

fn checked(settings: &GraceSettings) -> Result<(), String> {
    let GraceSettings {
        groups,
        window,
        profile,
        ..
    } = *settings;
    let counts = [("groups", groups), ("window", window), ("profile", profile)];
    if let Some((what, _)) = counts.into_iter().find(|&(_, count)| count == 0) {
        return Err(format!("{what} = 0: write a number above zero"));
    }
    share("rho", settings.rho)?;
    share("best_effort", settings.best_effort)
}

pub(super) fn share(what: &str, number: f64) -> Result<(), String> {
    if (0.0..=1.0).contains(&number) {
        return Ok(());
    }
    Err(format!("{what} = {number}: write a number from 0 to 1"))
}

/// The parameters of the tasks of `group` for the policy grace, and their CPU: real-time if they
/// have a period.
pub(super) fn grace_class(group: &TaskGroup) -> (GraceClass, CpuIndex) {
    let class = group
        .workload
        .period()
        .map_or(GraceClass::BestEffort, |period| GraceClass::RealTime {
            period,
            rho: group.rho,
        });
    (class, group.domain)
}
