//! `onbeat top`: shows what onbeat does with each thread.

use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, anyhow, bail};
use onbeat_model::Span;
use onbeat_top::{
    Feeder, Model, News, ScreenLook, ServiceConnection, ServiceError, as_lines, as_table, follow,
    show,
};

use super::{attach, report, run};
use crate::cli::TopArgs;
use crate::live_view::LiveView;
use crate::replay::{self, TopReplay};
use onbeat_command::signals::Signals;
use onbeat_command::table::TextTable;

/// The time over which the use is a mean where there is only one look.
const USED_OVER: Span = Span::from_secs(1);

/// Looks on, wherever there is something to see.
pub(crate) fn run(args: &TopArgs) -> anyhow::Result<ExitCode> {
    if args.once || args.json {
        print_once(args)?;
        return Ok(ExitCode::SUCCESS);
    }
    if !io::stdout().is_terminal() {
        bail!(
            "standard output is not a terminal: --once prints one table, --json one line per thread"
        );
    }
    if !args.command.is_empty() {
        let name = args
            .command
            .first()
            .and_then(|name| Path::new(name).file_name());
        let view = LiveView::new(Model::new(&name.unwrap_or_default().to_string_lossy()));
        return run::start(&args.command, &args.keep, Some(view));
    }
    if !args.pids.is_empty() {
        let names: Vec<String> = args.pids.iter().map(u32::to_string).collect();
        let view = LiveView::new(Model::new(&format!("process {}", names.join(" "))));
        return attach::start(&args.pids, &args.keep, Some(view));
    }
    match &args.from {
        Some(path) => look_again(path)?,
        None => look_at_service()?,
    }
    Ok(ExitCode::SUCCESS)
}

fn look_again(path: &Path) -> anyhow::Result<()> {
    let signals = listen()?;
    let replay = TopReplay::new(&report::read(path)?);
    let source = path.file_name().unwrap_or_default().to_string_lossy();
    look_at(&source, &signals, move |feeder| {
        replay::follow(replay, &feeder);
    })
}

fn look_at_service() -> anyhow::Result<()> {
    // Before the connection starts threads.
    let signals = listen()?;
    let mut service = ServiceConnection::connect().map_err(without_service)?;
    service.look().map_err(without_service)?;
    look_at("the service", &signals, move |feeder| {
        follow(service, &feeder);
    })
}

fn without_service(error: ServiceError) -> anyhow::Error {
    anyhow!(
        "{error}; to look at a program without the service: sudo onbeat top -- CMD, or --pid PID"
    )
}

fn listen() -> anyhow::Result<Signals> {
    Signals::block().context("cannot listen for signals")
}

fn look_at(
    source: &str,
    signals: &Signals,
    follow: impl FnOnce(Feeder) + Send + 'static,
) -> anyhow::Result<()> {
    let (feeder, feed) = Feeder::new();
    // Ends with the process: it may be waiting for an answer.
    std::thread::spawn(move || follow(feeder));
    let mut model = Model::new(source);
    let look = ScreenLook::of_environment();
    show(&mut model, &feed, &look, || {
        signals.next_that_ends().is_some()
    })
    .context("cannot use the terminal")
}

/// How things stand with the service, or stood at the end of a run.
fn seen_once(args: &TopArgs) -> anyhow::Result<Model> {
    let mut model = Model::new("");
    match &args.from {
        Some(path) => {
            let mut replay = TopReplay::new(&report::read(path)?);
            for time in [Span::ZERO, replay.length()] {
                model.update(News::Snapshot(replay.after(time)));
            }
        }
        None => {
            let mut service = ServiceConnection::connect().map_err(without_service)?;
            let told = service.look_twice(&mut model, USED_OVER);
            told.map_err(without_service)?;
        }
    }
    Ok(model)
}

fn print_once(args: &TopArgs) -> anyhow::Result<()> {
    let model = seen_once(args)?;
    let mut stdout = io::stdout().lock();
    if args.json {
        stdout.write_all(as_lines(&model)?.as_bytes())?;
        return Ok(());
    }
    let (headings, rows) = as_table(&model);
    let mut table = TextTable::new(&headings);
    for row in rows {
        table.row(row);
    }
    write!(stdout, "{table}")?;
    Ok(())
}
