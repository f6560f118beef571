//! The results: the figures of each group of tasks and of the CPUs. Serialised, it is what
//! `onbeat-lab sim --json` prints.

use onbeat_control::TimeHistogram;
use onbeat_model::{Instant, Quantiles, Span};
use serde::Serialize;

use super::{Power, Scenario};
use crate::machine::CpuAccount;
use crate::observe::Completion;
use crate::{Observer, TaskIndex};

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ScenarioFigures {
    pub seed: u64,
    pub duration_ns: Span,
    pub tasks: Vec<GroupFigures>,
    pub cpus: Vec<CpuFigures>,
    /// The energy of all CPUs: seconds at full power (GRACE-OS, eq. 13).
    pub energy: f64,
    pub jobs: u64,
    /// How often a CPU went from one task to another.
    pub switches: u64,
    /// How often onbeat set or changed a reservation; none if it did not run.
    pub changes: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GroupFigures {
    pub name: String,
    pub count: usize,
    /// Their jobs that were done, or were due by the end and not done.
    pub jobs: u64,
    /// Those of them that were late.
    pub missed: u64,
    /// From release to end; none without a job.
    pub response_time: Option<Quantiles>,
    pub executed_ns: Span,
    pub exhaustions: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CpuFigures {
    pub busy: f64,
    pub speed_changes: u64,
    pub speeds: Vec<SpeedFigures>,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SpeedFigures {
    pub khz: u64,
    pub busy_ns: Span,
    pub idle_ns: Span,
}

impl CpuFigures {
    pub(super) fn of(account: &CpuAccount) -> Self {
        let (busy, idle) = (account.busy_time(), account.idle_time());
        let speeds = account.busy.iter().zip(&account.idle);
        Self {
            busy: busy.ratio(busy + idle),
            speed_changes: account.speed_changes,
            speeds: speeds
                .map(|(&(speed, busy_ns), &(_, idle_ns))| SpeedFigures {
                    khz: speed.as_khz(),
                    busy_ns,
                    idle_ns,
                })
                .collect(),
        }
    }

    pub(super) fn energy(&self, power: &Power, full_khz: u64) -> f64 {
        let at = |figures: &SpeedFigures| {
            let ratio = figures.khz as f64 / full_khz as f64;
            let idle = if power.idle_at_speed {
                power.busy(ratio)
            } else {
                power.idle
            };
            figures.busy_ns.as_secs_f64() * power.busy(ratio) + figures.idle_ns.as_secs_f64() * idle
        };
        self.speeds.iter().map(at).sum()
    }
}

#[derive(Debug)]
pub(super) struct Tally {
    group_of: Vec<usize>,
    groups: Vec<GroupSums>,
}

#[derive(Clone, Debug, Default)]
struct GroupSums {
    jobs: u64,
    missed: u64,
    /// A quantile is within 1%.
    responses: TimeHistogram<7>,
    exhaustions: u64,
}

impl Tally {
    pub(super) fn of(scenario: &Scenario) -> Self {
        let groups = scenario.groups.iter().enumerate();
        Self {
            group_of: groups
                .flat_map(|(number, group)| std::iter::repeat_n(number, group.count))
                .collect(),
            groups: vec![GroupSums::default(); scenario.groups.len()],
        }
    }

    fn sums(&mut self, task: TaskIndex) -> &mut GroupSums {
        &mut self.groups[self.group_of[task]]
    }

    pub(super) fn late(&mut self, task: TaskIndex, count: u64) {
        let sums = self.sums(task);
        sums.jobs += count;
        sums.missed += count;
    }

    pub(super) fn figures(&self, scenario: &Scenario, executed: &[Span]) -> Vec<GroupFigures> {
        let sums = self.groups.iter().enumerate().zip(&scenario.groups);
        sums.map(|((number, sums), group)| GroupFigures {
            name: group.name.to_text(),
            count: group.count,
            jobs: sums.jobs,
            missed: sums.missed,
            response_time: sums.responses.quantiles(),
            executed_ns: self
                .group_of
                .iter()
                .zip(executed)
                .filter(|&(&of, _)| of == number)
                .map(|(_, &executed)| executed)
                .sum(),
            exhaustions: sums.exhaustions,
        })
        .collect()
    }
}

impl Observer for Tally {
    fn job(&mut self, job: &Completion) {
        let sums = self.sums(job.task);
        sums.jobs += 1;
        sums.missed += u64::from(job.missed());
        sums.responses.record(job.response());
    }

    fn exhausted(&mut self, task: TaskIndex, _at: Instant) {
        self.sums(task).exhaustions += 1;
    }
}
