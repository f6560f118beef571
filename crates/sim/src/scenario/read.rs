//! From the text of a scenario to the scenario, or to what is wrong with it, where, and what to do.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use onbeat_decide::predictor::{Kind, Parameters};
use onbeat_model::{Bandwidth, Instant, Ladder, Name, Reservation, Span, Speed};
use toml::Spanned;

use super::file::{self, File};
use super::recorded::{self, Trace};
use super::{Group, Onbeat, Power, Scenario, Scheduler, scheduler};
use crate::Work;
use crate::machine::{Costs, Cpus};
use crate::policy::linux::{Class, Config, Deadline, Fair, Fixed, Order, Overrun};
use crate::workload::{Arrival, Demand, Frames, Workload};

/// What is wrong with a scenario.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    /// The file cannot be read.
    #[error("cannot read {path}: {source}")]
    Unreadable {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// Something in it cannot be simulated.
    #[error("{path}:{line}: {problem}")]
    Wrong {
        /// The file.
        path: PathBuf,
        /// The line in it, from 1.
        line: usize,
        /// What is wrong, and what to write instead.
        problem: String,
    },
}

/// Most CPUs and tasks: beyond, a typing error is more likely than a machine.
const MOST_CPUS: usize = 4096;
const MOST_TASKS: usize = 1_000_000;

/// Reads the scenario at `path`.
///
/// # Errors
/// If it, or a recording that it names, cannot be read or is not right.
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
///
/// # Errors
/// As [`read`].
pub fn parse(text: &str, path: &Path) -> Result<Scenario, ScenarioError> {
    let reader = Reader { text, path };
    let file: File = toml::from_str(text)
        .map_err(|error| reader.wrong(&error.span().unwrap_or(0..0), error.message().to_owned()))?;
    reader.scenario(&file)
}

struct Reader<'a> {
    text: &'a str,
    path: &'a Path,
}

impl Reader<'_> {
    fn wrong(&self, at: &Range<usize>, problem: impl Into<String>) -> ScenarioError {
        let before = self.text.as_bytes().get(..at.start).unwrap_or_default();
        ScenarioError::Wrong {
            path: self.path.to_owned(),
            line: before.iter().filter(|&&byte| byte == b'\n').count() + 1,
            problem: problem.into(),
        }
    }

    fn scenario(&self, file: &File) -> Result<Scenario, ScenarioError> {
        let duration = file.duration.get_ref().0;
        if duration.is_zero() {
            let problem = "a duration of nothing: write one above zero, as in \"60s\"";
            return Err(self.wrong(&file.duration.span(), problem));
        }
        let cpus = self.cpus(&file.machine)?;
        let config = self.config(&file.machine, cpus.count)?;
        let scheduler = Scheduler::of(file).map_err(|problem| {
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
            power: Power {
                fixed: power.fixed,
                exponent: power.exponent,
                idle: power.idle,
                idle_at_speed: power.idle_at_speed,
            },
            groups,
            onbeat: file.onbeat.as_ref().map(|o| self.onbeat(o)).transpose()?,
        })
    }

    fn cpus(&self, machine: &file::Machine) -> Result<Cpus, ScenarioError> {
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

    fn config(&self, machine: &file::Machine, cpus: usize) -> Result<Config, ScenarioError> {
        let config = match machine.scheduling {
            file::Scheduling::Global => Config::global(cpus),
            file::Scheduling::Partitioned => Config::partitioned(cpus),
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
            round,
            runtimes_follow_speed: machine.runtimes_follow_speed,
            ..config
        })
    }

    fn onbeat(&self, onbeat: &file::Onbeat) -> Result<Onbeat, ScenarioError> {
        let predictor = match &onbeat.predictor {
            None => Kind::default(),
            Some(name) => Kind::ALL
                .into_iter()
                .find(|kind| kind.name() == name.get_ref())
                .ok_or_else(|| {
                    let names = Kind::ALL.map(Kind::name).join(", ");
                    let problem =
                        format!("no predictor '{}': write one of {names}", name.get_ref());
                    self.wrong(&name.span(), problem)
                })?,
        };
        Ok(Onbeat {
            predictor,
            parameters: Parameters::default(),
            sets_speed: onbeat.power,
        })
    }

    fn group(
        &self,
        task: &Spanned<file::Task>,
        config: &Config,
        scheduler: &Scheduler,
    ) -> Result<Group, ScenarioError> {
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
        match scheduler {
            Scheduler::Linux if task.rho.is_some() => {
                return Err(wrong("rho is for the policy grace: leave it out".into()));
            }
            Scheduler::Grace(_) if task.scheduling.is_some() => {
                return Err(wrong(
                    "scheduling is for the policy linux: leave it out".into(),
                ));
            }
            _ => {}
        }
        let (arrival, demand) = self.jobs(task).map_err(wrong)?;
        let mut workload = Workload::new(arrival, demand).in_bursts(task.bursts, task.pause.0);
        if let Some(deadline) = task.deadline {
            workload = workload.with_deadline(deadline.0);
        }
        Ok(Group {
            name: Name::from(task.name.as_str()),
            count: task.count,
            class: class(&task.scheduling.unwrap_or_default()).map_err(wrong)?,
            rho: scheduler::share("rho", task.rho).map_err(wrong)?,
            domain,
            workload,
            tracked: task.tracked,
        })
    }

    fn jobs(&self, task: &file::Task) -> Result<(Arrival, Demand), String> {
        let folder = self.path.parent().unwrap_or(Path::new(""));
        let trace = match &task.arrival {
            file::Arrival::Recorded(recorded) => Some(recorded::load(folder, recorded)?),
            _ => None,
        };
        let demand = match (&task.demand, &trace) {
            (Some(demand), _) => self::demand(demand, folder)?,
            (None, Some(trace)) => trace_demand(trace, false),
            (None, None) => {
                return Err("it needs a demand, as in demand = { constant = \"5ms\" }".into());
            }
        };
        Ok((arrival(task, trace)?, demand))
    }
}

fn above_zero(what: &str, time: file::Time) -> Result<Span, String> {
    if time.0.is_zero() {
        return Err(format!(
            "{what} is nothing: write a time above zero, as in \"20ms\""
        ));
    }
    Ok(time.0)
}

fn arrival(task: &file::Task, trace: Option<Trace>) -> Result<Arrival, String> {
    let first = Instant::ZERO + task.phase.0;
    Ok(match (&task.arrival, trace) {
        (file::Arrival::Periodic(period), _) => Arrival::Periodic {
            period: above_zero("its period", *period)?,
            next: first,
            jitter: task.jitter.0,
        },
        (file::Arrival::Poisson(mean), _) => Arrival::Poisson {
            mean: above_zero("its mean time between jobs", *mean)?,
            last: first,
        },
        (file::Arrival::After(pause), _) => Arrival::After {
            pause: above_zero("its pause", *pause)?,
            first: Some(first),
        },
        (file::Arrival::Recorded(_), Some(trace)) => Arrival::Recorded {
            releases: trace.releases.iter().map(|&at| at + task.phase.0).collect(),
            over: 0,
        },
        _ => Arrival::Always,
    })
}

fn demand(demand: &file::Demand, folder: &Path) -> Result<Demand, String> {
    Ok(match demand {
        file::Demand::Constant(time) => Demand::constant(above_zero("its demand", *time)?),
        file::Demand::Uniform(least, most) if least.0 <= most.0 => Demand::Uniform(least.0, most.0),
        file::Demand::Uniform(..) => {
            return Err(
                "a uniform demand goes from the least to the most, as in [\"2ms\", \"4ms\"]".into(),
            );
        }
        file::Demand::Normal {
            mean,
            deviation,
            most,
        } => Demand::Normal {
            mean: above_zero("the mean of its demand", *mean)?,
            deviation: deviation.0,
            most: most.map_or(Span::MAX, |most| most.0),
        },
        file::Demand::Exponential(mean) => {
            Demand::Exponential(above_zero("its mean demand", *mean)?)
        }
        file::Demand::Frames {
            group,
            variation,
            scene_variation,
            scene_change,
        } => {
            let group: Arc<[Span]> = group.iter().map(|time| time.0).collect();
            if group.is_empty() {
                return Err(
                    "a group needs a frame or more, as in group = [\"9ms\", \"4ms\"]".into(),
                );
            }
            Demand::Frames(Frames::new(
                group,
                *variation,
                *scene_variation,
                *scene_change,
            ))
        }
        file::Demand::Recorded(recorded) => trace_demand(&recorded::load(folder, recorded)?, true),
        file::Demand::Endless => Demand::Constant(Work::ENDLESS),
    })
}

fn trace_demand(trace: &Trace, repeat: bool) -> Demand {
    Demand::Recorded {
        demands: Arc::clone(&trace.demands),
        over: 0,
        repeat,
    }
}

fn class(class: &file::Class) -> Result<Class, String> {
    let fixed = |priority: u8, order| {
        if (1..=99).contains(&priority) {
            Ok(Class::Fixed(Fixed { priority, order }))
        } else {
            Err(format!(
                "there is no priority {priority}: write 1 to 99, the highest first served"
            ))
        }
    };
    match *class {
        file::Class::Fifo(priority) => fixed(priority, Order::Fifo),
        file::Class::Rr(priority) => fixed(priority, Order::RoundRobin),
        file::Class::Nice(nice) if (-20..=19).contains(&nice) => Ok(Class::Fair(Fair::nice(nice))),
        file::Class::Nice(nice) => Err(format!("there is no nice {nice}: write -20 to 19")),
        file::Class::Deadline {
            runtime,
            period,
            deadline,
            overrun,
            reclaim,
        } => {
            let deadline = deadline.unwrap_or(period).0;
            let reservation = Reservation::new(runtime.0, deadline, period.0);
            Ok(Class::Deadline(Deadline {
                reservation: reservation.map_err(|error| error.to_string())?,
                overrun: match overrun {
                    file::Overrun::Hard => Overrun::Hard,
                    file::Overrun::Soft => Overrun::Soft,
                },
                reclaim,
            }))
        }
    }
}
