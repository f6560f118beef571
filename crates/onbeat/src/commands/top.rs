//! `onbeat top`: shows what onbeat does with each thread.

use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, bail};
use onbeat_top::{Feed, Look, Model, Service, as_lines, as_table, follow, show};

use super::{attach, run};
use crate::cli::TopArgs;
use crate::onlooker::Onlooker;
use crate::signals::Signals;
use crate::table::{Align, Table};

/// What is used is a mean over so long where it is looked once.
const USED_OVER: Duration = Duration::from_secs(1);

/// Looks on, wherever there is something to see.
pub(crate) fn run(args: &TopArgs) -> anyhow::Result<ExitCode> {
    if args.once || args.json {
        print_once(args.json)?;
        return Ok(ExitCode::SUCCESS);
    }
    if !io::stdout().is_terminal() {
        bail!(
            "standard output is no terminal: --once prints one table, --json one line per thread"
        );
    }
    if !args.command.is_empty() {
        let name = args.command.first().map(|name| name.to_string_lossy());
        let onlooker = Onlooker::new(Model::new(&name.unwrap_or_default()));
        return run::start(&args.command, &args.keep, Some(onlooker));
    }
    if !args.pids.is_empty() {
        let names: Vec<String> = args.pids.iter().map(u32::to_string).collect();
        let onlooker = Onlooker::new(Model::new(&format!("process {}", names.join(" "))));
        return attach::start(&args.pids, &args.keep, Some(onlooker));
    }
    look_at_service()?;
    Ok(ExitCode::SUCCESS)
}

const WITHOUT_SERVICE: &str =
    "to look at a program without the service: sudo onbeat top -- CMD, or --pid PID";

fn look_at_service() -> anyhow::Result<()> {
    let signals = Signals::block().context("cannot listen for signals")?;
    let mut service = Service::connect().context(WITHOUT_SERVICE)?;
    service.look(&Default::default()).context(WITHOUT_SERVICE)?;
    let (feeder, feed) = Feed::new();
    // Ends with the process: it may be waiting for an answer.
    std::thread::spawn(move || follow(service, &feeder));
    let mut model = Model::new("the service");
    let look = Look::of_environment();
    show(&mut model, &feed, &look, || told_to_end(&signals)).context("cannot use the terminal")
}

fn told_to_end(signals: &Signals) -> bool {
    while let Some(signal) = signals.next() {
        if matches!(
            signal.number,
            libc::SIGINT | libc::SIGTERM | libc::SIGHUP | libc::SIGQUIT
        ) {
            return true;
        }
    }
    false
}

fn print_once(json: bool) -> anyhow::Result<()> {
    let mut service = Service::connect().context(WITHOUT_SERVICE)?;
    let mut model = Model::new("the service");
    service
        .look_twice(&mut model, USED_OVER)
        .context(WITHOUT_SERVICE)?;
    let mut stdout = io::stdout().lock();
    if json {
        stdout.write_all(as_lines(&model)?.as_bytes())?;
        return Ok(());
    }
    let (headings, rows) = as_table(&model);
    let columns: Vec<(&str, Align)> = headings
        .iter()
        .map(|heading| (*heading, align(heading)))
        .collect();
    let mut table = Table::new(&columns);
    for row in rows {
        table.row(row);
    }
    write!(stdout, "{table}")?;
    Ok(())
}

fn align(heading: &str) -> Align {
    match heading {
        "thread" | "state" | "why" => Align::Left,
        _ => Align::Right,
    }
}
