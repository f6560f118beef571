//! The tasks on this machine, one way after the other.

use std::process::Command;
use std::time::Duration;

use super::{Args, Figures, NAME, Responses, responses_ms, tasks};
use crate::lfspp;
use crate::machine::{Machine, Onbeat, OnbeatReport};
use crate::results::Ran;
use crate::rt_app::{Calibration, RtApp};

const HOGS: usize = 4;

#[derive(Clone, Copy, Debug, PartialEq)]
enum RtAppsWay {
    Default,
    HandSet,
    Lfspp,
    Onbeat,
}

impl RtAppsWay {
    const ALL: [Self; 4] = [Self::Default, Self::HandSet, Self::Lfspp, Self::Onbeat];

    const fn name(self) -> &'static str {
        match self {
            Self::Default => "default scheduler",
            Self::HandSet => "set by hand",
            Self::Lfspp => "LFS++",
            Self::Onbeat => "onbeat",
        }
    }
}

pub(super) fn run(
    machine: &Machine,
    args: &Args,
) -> anyhow::Result<(Ran, Vec<Figures>, Vec<Responses>)> {
    machine.need_root()?;
    let facts = machine.facts();
    println!("measuring rt-app's busy loop ...");
    let calibration = Calibration::measure(machine)?;
    let (mut figures, mut responses) = (Vec::new(), Vec::new());
    for (n, way) in (1..).zip(RtAppsWay::ALL) {
        println!(
            "[{n}/{}] {}, beside {} hogs: {} s ...",
            RtAppsWay::ALL.len(),
            way.name(),
            args.hogs.unwrap_or(HOGS),
            args.seconds
        );
        let (of_tasks, of_the_shortest) = run_in(machine, args, calibration, way)?;
        figures.extend(of_tasks);
        responses.push((way.name(), of_the_shortest));
    }
    Ok((Ran::Live(facts), figures, responses))
}

fn run_in(
    machine: &Machine,
    args: &Args,
    calibration: Calibration,
    way: RtAppsWay,
) -> anyhow::Result<(Vec<Figures>, Vec<f64>)> {
    let tasks = tasks(way == RtAppsWay::HandSet);
    let time = Duration::from_secs(args.seconds);
    let leave_out = Duration::from_secs(args.leave_out);
    let rt_app = RtApp::new(&tasks, calibration, time)?;
    let onbeat = Onbeat::new(machine, NAME)?;
    let hogs = (
        args.hogs.unwrap_or(HOGS),
        Duration::from_secs(args.hogs_after),
    );
    let of_lfspp = machine.file(&format!("{NAME}.lfspp.json"));
    let command = match way {
        RtAppsWay::Default | RtAppsWay::HandSet => Command::new("rt-app"),
        RtAppsWay::Onbeat => onbeat.run([""; 0], "rt-app"),
        RtAppsWay::Lfspp => {
            let mut command = lfspp::command(&of_lfspp)?;
            command.arg("rt-app");
            command
        }
    };
    let used = rt_app.run(machine, command, hogs, leave_out)?;
    let threads = match way {
        RtAppsWay::Default | RtAppsWay::HandSet => Vec::new(),
        RtAppsWay::Lfspp => OnbeatReport::read(&of_lfspp)?,
        RtAppsWay::Onbeat => onbeat.threads()?,
    };
    let (mut figures, mut responses) = (Vec::new(), Vec::new());
    for (n, task) in tasks.iter().enumerate() {
        let log = rt_app.log(task.name)?;
        if n == 0 {
            responses = responses_ms(&log, leave_out.as_secs_f64());
        }
        let jobs = log.jobs(leave_out.as_secs_f64());
        println!(
            "      {}: {:.2}% of {} jobs late",
            task.name,
            jobs.miss_ratio() * 100.0,
            jobs.jobs
        );
        let seen = threads.iter().find(|t| t.comm.starts_with(task.name));
        let used = used.iter().find(|(name, _)| name.starts_with(task.name));
        let used = used.map(|(_, used)| *used);
        figures.push(Figures::new(way.name(), task, jobs, seen, used));
    }
    Ok((figures, responses))
}
