//! `onbeat-lab scheduler`: onbeat's own schedulers in the kernel.

mod chooser;
mod groups;
mod plans;
mod show;
mod start;

use std::io::{self, Write};
use std::process::ExitCode;

use onbeat_schedulers::{ALL, Opened, Value, kernel};
use serde::Serialize;
use serde_json::{Map, Number};

use crate::cli::{SchedulerArgs, SchedulerCommand};

pub(crate) fn run(args: &SchedulerArgs) -> anyhow::Result<ExitCode> {
    match &args.command {
        SchedulerCommand::List(list_args) => list(list_args.json),
        SchedulerCommand::Start(start_args) => start::run(start_args),
        SchedulerCommand::Status(status_args) => status(status_args.json),
    }
}

/// The output of `list --json` for each scheduler; `docs/formats.md` describes it.
#[derive(Serialize)]
struct Listed {
    name: &'static str,
    about: &'static str,
    settings: Map<String, serde_json::Value>,
}

fn list(json: bool) -> anyhow::Result<ExitCode> {
    let mut output = io::stdout().lock();
    for scheduler in &ALL {
        let settings = Opened::new(scheduler)?.settings();
        if json {
            let listed = Listed {
                name: scheduler.name,
                about: scheduler.about,
                settings: object(&settings),
            };
            writeln!(output, "{}", serde_json::to_string(&listed)?)?;
            continue;
        }
        writeln!(output, "{}: {}", scheduler.name, scheduler.about)?;
        for Value { name, value } in settings {
            writeln!(output, "    --set {name}={value}")?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The output of `status --json`; `docs/formats.md` describes it.
#[derive(Serialize)]
struct StatusOutput {
    available: bool,
    state: Option<String>,
    scheduler: Option<String>,
    whole: bool,
    starts: u64,
    chosen: usize,
}

fn status(json: bool) -> anyhow::Result<ExitCode> {
    let status = kernel::status();
    let told = StatusOutput {
        available: status.is_some(),
        state: status.as_ref().map(|status| status.state.clone()),
        scheduler: status.as_ref().and_then(|status| status.scheduler.clone()),
        whole: status.as_ref().is_some_and(|status| status.whole),
        starts: status.as_ref().map_or(0, |status| status.starts),
        chosen: chooser::count(),
    };
    let mut output = io::stdout().lock();
    if json {
        writeln!(output, "{}", serde_json::to_string(&told)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    match (&told.scheduler, told.available) {
        (_, false) => writeln!(output, "{}", onbeat_schedulers::Error::NoSchedExt)?,
        (None, true) => {
            let text = "no scheduler is loaded: the kernel's own is in force";
            writeln!(output, "{text}")?;
            if let Some(obstacle) = kernel::obstacle() {
                writeln!(output, "{obstacle}")?;
            }
        }
        (Some(name), true) if told.whole => {
            writeln!(output, "{name} schedules all ordinary tasks")?;
        }
        (Some(name), true) => writeln!(output, "{name} schedules {} chosen threads", told.chosen)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn object(values: &[Value]) -> Map<String, serde_json::Value> {
    values
        .iter()
        .filter_map(|value| {
            let number = Number::from_i128(value.value)?;
            Some((value.name.clone(), number.into()))
        })
        .collect()
}
