//! Everything that is configured.

use std::collections::{BTreeSet, HashMap};

use onbeat_kernel::cpus::online;
use onbeat_model::Bandwidth;

use super::error::{ConfigError, Place};
use super::tables::Budgets;
use crate::account;
use crate::bus::PriorityLimits;
use crate::quota::{Quota, Quotas};
use crate::rules::Rules;

#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    pub budgets: Budgets,
    /// Quotas, as far as they need no look at the database of users.
    pub(super) quota: Quota,
    /// The share of all CPUs that one who sits at the machine has instead.
    pub(super) seat: Bandwidth,
    pub(super) users: Vec<(Place, String, Quota)>,
    pub(super) groups: Vec<(Place, String, Quota)>,
    pub realtimekit: Option<PriorityLimits>,
    /// Which programs are tracked by themselves.
    pub rules: Rules,
    /// Whether threads of the same user that work for tracked ones are found and tracked with
    /// them.
    pub pipelines: bool,
    /// Whether it acts also while nobody else wants the CPUs.
    pub always: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            budgets: Budgets::default(),
            quota: Quota::default(),
            seat: Bandwidth::from_cpus(0.5),
            users: Vec::new(),
            groups: Vec::new(),
            realtimekit: Some(PriorityLimits::default()),
            rules: Rules::default(),
            pipelines: true,
            always: false,
        }
    }
}

impl Config {
    /// The keys that are others than in `started`, with which the service was started, and take
    /// effect when it is started again.
    pub fn later_than(&self, started: &Self) -> Vec<&'static str> {
        let pipelines = (self.pipelines != started.pipelines).then_some("pipelines");
        pipelines.into_iter().collect()
    }

    /// Has the number in place of the name of each user that a rule names and that there is.
    pub fn look_up_users(&mut self) {
        for user in self
            .rules
            .list
            .iter_mut()
            .filter_map(|rule| rule.user.as_mut())
        {
            if let Some(uid) = account::user_named(user) {
                *user = uid.to_string();
            }
        }
    }

    /// The quotas, with users and groups looked up.
    /// Fails if one of them does not exist.
    pub fn quotas(&self) -> Result<Quotas, ConfigError> {
        let look_up =
            |all: &[(Place, String, Quota)], kind: &str, find: fn(&str) -> Option<u32>| {
                all.iter()
                    .map(|(place, name, quota)| {
                        let number = find(name).ok_or_else(|| {
                            place.wrong(format!(
                                "there is no {kind} {name}: mend the name, or remove the quota"
                            ))
                        })?;
                        Ok((number, *quota))
                    })
                    .collect::<Result<HashMap<u32, Quota>, ConfigError>>()
            };
        let cpus = online().map(|cpus| cpus.len() as f64);
        Ok(Quotas {
            default: self.quota,
            seat: self.quota.at_seat(self.seat, cpus.unwrap_or(1.0)),
            seated: BTreeSet::new(),
            users: look_up(&self.users, "user", account::user_named)?,
            groups: look_up(&self.groups, "group", account::group_named)?,
            all: cpus.map(|cpus| Bandwidth::from_cpus(cpus * self.budgets.total)),
        })
    }
}
