//! The scheduler: the policy that a scenario names, with its knobs.

use crate::stochastic::schedule::Rounding;
use onbeat_model::Reservation;

use super::TaskGroup;
use super::file::{GraceTable as Written, PolicyKey, ScenarioFile};
use crate::CpuIndex;
use crate::policy::grace::{GraceClass, GraceSettings, Scheme};
use crate::policy::linux;
use crate::policy::reserve::ReservePlace;

#[derive(Clone, Debug, Default, PartialEq)]
pub enum ScenarioScheduler {
    #[default]
    Linux,
    Grace(GraceSettings),
    Ruled(Ruling),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ruling {
    Linux24,
    Best,
    Berate,
    Reserve,
}

impl ScenarioScheduler {
    /// The scheduler that `file` names; the error says what to write instead.
    pub(super) fn of(file: &ScenarioFile) -> Result<Self, String> {
        let policy = file
            .policy
            .as_ref()
            .map_or(PolicyKey::Linux, |policy| *policy.get_ref());
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
        let ruled = |ruling| {
            if is_partitioned {
                return Err(
                    "this policy has one queue for all CPUs: leave out scheduling under [machine]"
                        .into(),
                );
            }
            Ok(Self::Ruled(ruling))
        };
        match policy {
            PolicyKey::Linux => Ok(Self::Linux),
            PolicyKey::Linux24 => ruled(Ruling::Linux24),
            PolicyKey::Best => ruled(Ruling::Best),
            PolicyKey::Berate => ruled(Ruling::Berate),
            PolicyKey::Reserve => ruled(Ruling::Reserve),
            PolicyKey::Grace if *file.machine.cpus.get_ref() > 1 && !is_partitioned => Err(
                "under the policy grace each task has its CPU: write scheduling = \"partitioned\" \
                     under [machine]"
                    .into(),
            ),
            PolicyKey::Grace => {
                let written = file.grace.as_ref().map(|grace| grace.get_ref().clone());
                settings(&written.unwrap_or_default()).map(Self::Grace)
            }
        }
    }
}

fn settings(written: &Written) -> Result<GraceSettings, String> {
    let default = GraceSettings::default();
    let scheme = match &written.scheme {
        None => default.scheme,
        Some(name) => Scheme::ALL
            .into_iter()
            .find(|scheme| scheme.name() == name)
            .ok_or_else(|| {
                let names = Scheme::ALL.map(Scheme::name).join(", ");
                format!("no scheme '{name}': write one of {names}")
            })?,
    };
    let rounding = match written.rounding.as_deref() {
        None => default.rounding,
        Some("up") => Rounding::Up,
        Some("two") => Rounding::Two,
        Some("exact") => Rounding::Exact,
        Some(other) => return Err(format!("no rounding '{other}': write up, two or exact")),
    };
    let at_least_one = |what: &str, number: Option<usize>, default: usize| match number {
        Some(0) => Err(format!("{what} = 0: write a number above zero")),
        number => Ok(number.unwrap_or(default)),
    };
    Ok(GraceSettings {
        scheme,
        rho: share("rho", written.rho)?.unwrap_or(default.rho),
        groups: at_least_one("groups", written.groups, default.groups)?,
        window: at_least_one("window", written.window, default.window)?,
        profile: at_least_one("profile", written.profile, default.profile)?,
        update_every: written.update_every,
        margin: written.margin,
        best_effort: share("best_effort", written.best_effort)?.unwrap_or(default.best_effort),
        rounding,
        tick: written.tick.map_or(default.tick, |tick| tick.0),
        reserve: written.reserve.map_or(default.reserve, |reserve| reserve.0),
        lower_until: share("lower_until", written.lower_until)?.unwrap_or(default.lower_until),
    })
}

pub(super) fn share(what: &str, number: Option<f64>) -> Result<Option<f64>, String> {
    match number {
        Some(number) if !(0.0..=1.0).contains(&number) => {
            Err(format!("{what} = {number}: write a number from 0 to 1"))
        }
        number => Ok(number),
    }
}

/// The reservations of the policy reserve, one for each group that has one, and what the tasks of
/// each group are to it.
pub(super) fn reserve_places(groups: &[TaskGroup]) -> (Vec<Reservation>, Vec<ReservePlace>) {
    let mut reservations = Vec::new();
    let place = |group: &TaskGroup| match group.class {
        linux::Class::Deadline(deadline) => {
            reservations.push(deadline.reservation);
            ReservePlace::Member(reservations.len() - 1)
        }
        linux::Class::Fair(fair) => ReservePlace::Weight(u64::from(fair.weight) * 100 / 1024),
        linux::Class::Fixed(_) => ReservePlace::Weight(100),
    };
    let places = groups.iter().map(place).collect();
    (reservations, places)
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
