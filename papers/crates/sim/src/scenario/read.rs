//! From the text of a scenario to the scenario, or to what is wrong with it, where, and what to do.

use std::ops::Range;
use std::path::{Path, PathBuf};

use onbeat_decide::predictor::{Parameters, Percentile};
use onbeat_lfspp::predictor::NAMED;
use onbeat_lfspp::reference::ReferenceController;
use onbeat_model::{Bandwidth, Ladder, Name, Speed};
use toml::Spanned;

use super::file::{self, ScenarioFile};
use super::recorded;
use super::{LoopSettings, Scenario, ScenarioScheduler, TaskGroup, feedback, scheduler, task};
use crate::Work;
use crate::machine::{Costs, Cpus};
use crate::policy::linux::Config;
use crate::workload::{Arrival, Demand, Workload};

#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    #[error("cannot read {path}: {source}")]
    Unreadable {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("{path}:{line}: {problem}")]
    Wrong {
        path: PathBuf,
        line: usize,
        problem: String,
    },
}

/// Most CPUs and tasks: beyond, a typing error is more likely than a machine.
const MOST_CPUS: usize = 4096;
const MOST_TASKS: usize = 1_000_000;

pub fn read(path: impl AsRef<Path>) -> Result<Scenario, ScenarioError> {
    let path = path.as_ref();
    let text = std::fs::read_to_string(path).map_err(|source| ScenarioError::Unreadable {
        path: path.to_owned(),
        source,
    })?;
    parse(&text, path)
}

/// The same of a text; `path` is what errors call it, and its folder the one that recordings are
/// sought from.
pub fn parse(text: &str, path: &Path) -> Result<Scenario, ScenarioError> {
    let reader = ScenarioReader { text, path };
    let file: ScenarioFile = toml::from_str(text)
        .map_err(|error| reader.wrong(&error.span().unwrap_or(0..0), error.message().to_owned()))?;
    reader.scenario(&file)
}

struct ScenarioReader<'a> {
    text: &'a str,
    path: &'a Path,
}

impl ScenarioReader<'_> {
    fn wrong(&self, at: &Range<usize>, problem: impl Into<String>) -> ScenarioError {
        let before = self.text.as_bytes().get(..at.start).unwrap_or_default();
        ScenarioError::Wrong {
            path: self.path.to_owned(),
            line: before.iter().filter(|&&byte| byte == b'\n').count() + 1,
            problem: problem.into(),
        }
    }

    fn scenario(&self, file: &ScenarioFile) -> Result<Scenario, ScenarioError> {
        let duration = file.duration.get_ref().0;
        if duration.is_zero() {
            let problem = "a duration of nothing: write one above zero, as in \"60s\"";
            return Err(self.wrong(&file.duration.span(), problem));
        }
        let cpus = self.cpus(&file.machine)?;
        let config = self.config(&file.machine, &cpus)?;
        let scheduler = ScenarioScheduler::of(file).map_err(|problem| {
            let policy = file.policy.as_ref().map(Spanned::span);
            let at = policy.or(file.grace.as_ref().map(Spanned::span));
            self.wrong(&at.unwrap_or(0..0), problem)
        })?;
        let mut groups = Vec::new();
        let mut tasks = 0;
        for task in &file.tasks {
            let group = self.group(task, &config, &scheduler)?;
            tasks += group.count;
            if tasks > MOST_TASKS {
                let problem = format!("more than {MOST_TASKS} tasks: lower a count");
                return Err(self.wrong(&task.span(), problem));
            }
            groups.push(group);
        }
        let power = file.machine.power;
        Ok(Scenario {
            seed: file.seed,
            duration,
            cpus,
            scheduler,
            config,
            power,
            groups,
            onbeat: file.onbeat.as_ref().map(|o| self.onbeat(o)).transpose()?,
            feedback: self.feedback(file)?,
        })
    }

    fn cpus(&self, machine: &file::MachineTable) -> Result<Cpus, ScenarioError> {
        let count = *machine.cpus.get_ref();
        if count == 0 || count > MOST_CPUS {
            let problem = format!("{count} CPUs: write a number from 1 to {MOST_CPUS}");
            return Err(self.wrong(&machine.cpus.span(), problem));
        }
        let mhz = machine.speeds_mhz.get_ref().iter();
        let speeds = mhz.map(|mhz| Speed::from_khz(mhz.saturating_mul(1000)));
        let speeds = speeds.collect::<Option<Vec<Speed>>>().and_then(Ladder::new);
        let speeds = speeds.ok_or_else(|| {
            let problem = "speeds_mhz needs one speed or more, each above zero, as in [300, 1000]";
            self.wrong(&machine.speeds_mhz.span(), problem)
        })?;
        Ok(Cpus {
            count,
            speeds,
            continuous: machine.continuous,
            limit: None,
            costs: Costs {
                switch: machine.switch_cost.0,
                speed_change: machine.speed_change_cost.0,
                switch_work: Work::at_full_speed(machine.switch_work.0),
                speed_change_work: Work::at_full_speed(machine.speed_change_work.0),
            },
        })
    }

    fn config(&self, machine: &file::MachineTable, cpus: &Cpus) -> Result<Config, ScenarioError> {
        let config = match machine.scheduling {
            file::Scheduling::Global => Config::global(cpus.count),
            file::Scheduling::Partitioned => Config::partitioned(cpus.count),
        };
        let round = machine.round.get_ref().0;
        if round.is_zero() {
            let problem = "a round of nothing: write one above zero, as in \"100ms\"";
            return Err(self.wrong(&machine.round.span(), problem));
        }
        let fair_server = *machine.fair_server.get_ref();
        if !(0.0..1.0).contains(&fair_server) {
            let problem =
                "fair_server is a share of a CPU: write one from 0 to less than 1, as in 0.05";
            return Err(self.wrong(&machine.fair_server.span(), problem));
        }
        Ok(Config {
            tick: machine.tick.0,
            fair_server: Bandwidth::from_cpus(fair_server),
            grub_pa: (machine.governor == file::GovernorKey::Schedutil).then(|| cpus.highest()),
            round,
            runtimes_follow_speed: machine.runtimes_follow_speed,
            ..config
        })
    }

    fn onbeat(&self, onbeat: &file::OnbeatTable) -> Result<LoopSettings, ScenarioError> {
        let predictor = match &onbeat.predictor {
            None => Percentile::build,
            Some(name) => NAMED
                .into_iter()
                .find_map(|(known, build)| (known == name.get_ref()).then_some(build))
                .ok_or_else(|| {
                    let names = NAMED.map(|(name, _)| name).join(", ");
                    let problem =
                        format!("no predictor '{}': write one of {names}", name.get_ref());
                    self.wrong(&name.span(), problem)
                })?,
        };
        Ok(LoopSettings {
            predictor,
            parameters: Parameters::default(),
            sets_speed: onbeat.power,
            is_hard: onbeat.hard,
        })
    }

    fn feedback(&self, file: &ScenarioFile) -> Result<Option<ReferenceController>, ScenarioError> {
        let Some(written) = &file.feedback else {
            return Ok(None);
        };
        let method = feedback::method(file, written.get_ref());
        method
            .map(Some)
            .map_err(|problem| self.wrong(&written.span(), problem))
    }

    fn group(
        &self,
        task: &Spanned<file::TaskEntry>,
        config: &Config,
        scheduler: &ScenarioScheduler,
    ) -> Result<TaskGroup, ScenarioError> {
        let (at, task) = (task.span(), task.get_ref());
        let wrong = |problem: String| self.wrong(&at, format!("task '{}': {problem}", task.name));
        let domains = config.domains.len();
        let domain = match task.cpu {
            None if domains == 1 => 0,
            Some(cpu) if domains > 1 && cpu < domains => cpu,
            Some(cpu) if domains > 1 => {
                return Err(wrong(format!(
                    "there is no CPU {cpu}: write 0 to {}",
                    domains - 1
                )));
            }
            Some(_) => {
                let problem = "it runs on any CPU here: leave cpu out, or write \
                               scheduling = \"partitioned\" under [machine]";
                return Err(wrong(problem.into()));
            }
            None => {
                return Err(wrong(
                    "on a partitioned machine it needs a cpu, as in cpu = 0".into(),
                ));
            }
        };
        let scheduling = task.scheduling.unwrap_or_default();
        match scheduler {
            ScenarioScheduler::Grace(_) if task.scheduling.is_some() => {
                return Err(wrong(
                    "scheduling is for the policy linux: leave it out".into(),
                ));
            }
            ScenarioScheduler::Linux | ScenarioScheduler::Grace(_) => {}
            _ if task.rho.is_some() => {
                let problem = "rho is for the policies grace and linux: leave it out";
                return Err(wrong(problem.into()));
            }
            _ if !matches!(scheduling, file::SchedulingKey::Nice(_)) => {
                return Err(wrong(
                    "under this policy scheduling is a nice value, as in { nice = 0 }".into(),
                ));
            }
            _ => {}
        }
        let (arrival, demand) = self.jobs(task).map_err(wrong)?;
        let mut workload = Workload::new(arrival, demand)
            .in_bursts(task.bursts, task.pause.0)
            .notifying(task::notifies(task).map_err(wrong)?);
        if let Some(deadline) = task.deadline {
            workload = workload.with_deadline(deadline.0);
        }
        if let Some(rho) = task.rho {
            scheduler::share("rho", rho).map_err(wrong)?;
            if *scheduler == ScenarioScheduler::Linux {
                workload = workload.marking((rho * 1000.0).round() as u32);
            }
        }
        Ok(TaskGroup {
            name: Name::from(task.name.as_str()),
            count: task.count,
            class: task::class(&scheduling).map_err(wrong)?,
            nice: match scheduling {
                file::SchedulingKey::Nice(nice) => nice,
                _ => 0,
            },
            rho: task.rho,
            domain,
            workload,
            tracked: task.tracked,
        })
    }

    fn jobs(&self, task: &file::TaskEntry) -> Result<(Arrival, Demand), String> {
        let folder = self.path.parent().unwrap_or(Path::new(""));
        let trace = match &task.arrival {
            file::ArrivalKey::Recorded(recorded) => Some(recorded::load(folder, recorded)?),
            _ => None,
        };
        let demand = match (&task.demand, &trace) {
            (Some(demand), _) => task::demand(demand, folder)?,
            (None, Some(trace)) => task::trace_demand(trace, false),
            (None, None) => {
                return Err("it needs a demand, as in demand = { constant = \"5ms\" }".into());
            }
        };
        Ok((task::arrival(task, trace)?, demand))
    }
}
