//! The flags of `onbeat-lab scheduler`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, Subcommand};
use onbeat_daemon::account;
use onbeat_model::{Bandwidth, Span};
use onbeat_schedulers::reserve::GroupReservation;

use onbeat_command::state::StateDirectory;
use onbeat_command::values;

#[derive(Debug, Args)]
pub(crate) struct SchedulerArgs {
    #[command(subcommand)]
    pub(crate) command: SchedulerCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SchedulerCommand {
    /// List the schedulers with their settings
    List(ListArgs),
    /// Run a scheduler until Ctrl-C, and show what it does
    ///
    /// It schedules all ordinary tasks of the machine; with --pid or a program, only these and what
    /// they start. Such chosen tasks run only while no other ordinary task wants the CPU, except
    /// for a small part that kernels from 7.0 on keep for them. Needs root.
    Start(Box<StartArgs>),
    /// Show which scheduler is in force
    Status(StatusArgs),
}

#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Print one JSON object per scheduler and line instead of a table
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct StartArgs {
    /// The scheduler's name, from `onbeat-lab scheduler list`
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// Setting of the scheduler, such as tick_ns=4000000; may be given several times
    #[arg(long = "set", value_name = "NAME=NUMBER")]
    pub(crate) settings: Vec<SchedulerSetting>,
    /// A process to schedule, with all its threads and what they start; may be given several times
    /// [default: all tasks]
    #[arg(short, long = "pid", value_name = "PID")]
    pub(crate) pids: Vec<u32>,
    /// Reservation for a process or a control group, such as 1234=6ms/20ms; may be given several
    /// times (`reserve`)
    ///
    /// A process is named by its number, and shares the budget with what it starts from then on. A
    /// control group is named by its folder below /sys/fs/cgroup.
    #[arg(long = "group", value_name = "WHO=RUNTIME/PERIOD")]
    pub(crate) groups: Vec<GroupReservation>,
    /// Period of a thread for its budget and speeds, such as 1234=30ms or 1234=30ms:demands.csv;
    /// may be given several times (`grace`)
    ///
    /// The file has the demand of each job, in ns at the CPU's highest speed, one per line. Without
    /// a file onbeat measures the first hundred jobs, and each further hundred. A thread that calls
    /// onbeat_realtime_start() needs no --plan. The governor must be schedutil, which sets the
    /// speed that the scheduler requests.
    #[arg(long = "plan", value_name = "TID=PERIOD[:FILE]")]
    pub(crate) plans: Vec<PlanOption>,
    /// User, or group as in @audio, whose programs may request plans themselves (`grace`, without
    /// --pid or a program); may be given several times [default: root alone]
    ///
    /// A program is in the groups that its process is in. Each user whose programs may is one more
    /// that can take time from all others.
    #[arg(long, value_name = "WHO")]
    pub(crate) allow: Vec<Allowed>,
    /// Part of the CPU for all plans that programs of one user requested themselves (`grace`,
    /// without --pid or a program); more lets one user take more from all others
    ///
    /// Programs of root have no limit but that of all plans, which --best-effort sets.
    #[arg(long, value_name = "PERCENT", default_value = "50%", value_parser = values::percent)]
    pub(crate) user_share: Bandwidth,
    /// Part of the CPU that no plan gets, for tasks without one (`grace`); more leaves more of
    /// those that request a plan without a budget
    #[arg(long, value_name = "PERCENT", default_value = "5%", value_parser = values::percent)]
    pub(crate) best_effort: Bandwidth,
    /// Longest wait of a ready task before the kernel ends the scheduler [default: 30s]
    #[arg(long, value_name = "TIME", value_parser = values::positive_span)]
    pub(crate) watchdog: Option<Span>,
    /// Time between two lines of output
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = values::positive_span)]
    pub(crate) interval: Span,
    /// Print one JSON object per interval and line instead of a table
    #[arg(long)]
    pub(crate) json: bool,
    /// Print nothing
    #[arg(short, long, conflicts_with = "json")]
    pub(crate) quiet: bool,
    #[command(flatten)]
    pub(crate) state: StateDirectory,
    /// A program to start and schedule, with what it starts; onbeat ends with it
    #[arg(last = true, value_name = "CMD")]
    pub(crate) command: Vec<OsString>,
}

#[derive(Debug, Args)]
pub(crate) struct StatusArgs {
    /// Print one JSON object instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

/// A thread, its period, and perhaps a file with what its jobs demand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PlanOption {
    pub(crate) tid: u32,
    pub(crate) period: Span,
    /// Their demand; none: that is to be seen.
    pub(crate) demands: Option<PathBuf>,
}

impl FromStr for PlanOption {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (tid, rest) = text.split_once('=').ok_or_else(|| {
            "a thread and a period are expected, and a file if there is one, as in 1234=30ms:demands.csv"
                .to_owned()
        })?;
        let (period, demands) = match rest.split_once(':') {
            Some((period, file)) => (period, Some(file.into())),
            None => (rest, None),
        };
        Ok(Self {
            tid: tid
                .parse()
                .map_err(|_| format!("'{tid}' is no number of a thread"))?,
            period: values::positive_span(period)?,
            demands,
        })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Allowed {
    User(u32),
    Group(u32),
}

impl Allowed {
    /// Whether it is a process of such a user and in such groups.
    pub(crate) fn includes(self, user: u32, groups: &[u32]) -> bool {
        match self {
            Self::User(number) => number == user,
            Self::Group(number) => groups.contains(&number),
        }
    }
}

impl FromStr for Allowed {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let found = match text.strip_prefix('@') {
            Some(group) => account::group_named(group).map(Self::Group),
            None => account::user_named(text).map(Self::User),
        };
        found.ok_or_else(|| {
            format!("there is no {text}: write a user, or a group with @ before it, as in @audio")
        })
    }
}

/// A number of a scheduler's, and what it is to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SchedulerSetting {
    pub(crate) name: String,
    pub(crate) value: u64,
}

impl FromStr for SchedulerSetting {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (name, value) = text
            .split_once('=')
            .ok_or_else(|| "a name and a whole number are expected, as in mdn=0".to_owned())?;
        Ok(Self {
            name: name.to_owned(),
            value: value
                .parse()
                .map_err(|_| format!("'{value}' is no whole number, as in mdn=0"))?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_is_a_thread_a_period_and_perhaps_a_file() {
        let plan: PlanOption = "12=30ms:/a:b".parse().unwrap();
        assert_eq!((plan.tid, plan.period), (12, Span::from_ms(30)));
        assert_eq!(plan.demands, Some(PathBuf::from("/a:b")));
        let plan: PlanOption = "12=30ms".parse().unwrap();
        assert_eq!((plan.period, plan.demands), (Span::from_ms(30), None));
        for wrong in ["12", "12=", "x=30ms:f", "12=0ms:f", "12=30:f", "12=30"] {
            assert!(wrong.parse::<PlanOption>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_user_or_a_group_is_named_or_numbered() {
        let read = |text: &str| text.parse::<Allowed>();
        assert_eq!(read("root"), Ok(Allowed::User(0)));
        assert_eq!(read("1000"), Ok(Allowed::User(1000)));
        assert_eq!(read("@root"), Ok(Allowed::Group(0)));
        assert_eq!(read("@29"), Ok(Allowed::Group(29)));
        for wrong in ["", "@", "nobody of this name", "@no group of this name"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
        assert!(Allowed::User(5).includes(5, &[]) && !Allowed::User(5).includes(6, &[5]));
        assert!(Allowed::Group(5).includes(6, &[4, 5]) && !Allowed::Group(5).includes(5, &[4]));
    }

    #[test]
    fn a_setting_is_a_name_and_a_whole_number() {
        let setting: SchedulerSetting = "boost.step=3".parse().unwrap();
        assert_eq!((setting.name.as_str(), setting.value), ("boost.step", 3));
        assert!("boost".parse::<SchedulerSetting>().is_err());
        assert!("boost=-1".parse::<SchedulerSetting>().is_err());
        assert!("boost=".parse::<SchedulerSetting>().is_err());
    }
}
