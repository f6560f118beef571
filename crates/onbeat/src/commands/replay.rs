//! `onbeat replay`: what the loop decides on a recording, in the recording's time.

use std::cell::RefCell;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::process::ExitCode;

use anyhow::Context;
use onbeat_act::kernel;
use onbeat_control::{AllowedMeans, Controller, DryRun, Entry, Next, Settings, drive};
use onbeat_model::{Bandwidth, Capacity, Follow, Instant, Sensor};
use onbeat_sense::recording::{self, Format, Recording, Replay};

use super::keep::{Closing, tell, write_report};
use crate::cli::ReplayArgs;
use crate::config::RunConfig;
use crate::history::{RunHistory, Tap};
use crate::own_time::OwnTime;
use crate::run_table;
use onbeat_command::output::{Output, create, warn};
use onbeat_command::table::TextTable;
use onbeat_top::Align;

pub(crate) fn run(args: &ReplayArgs) -> anyhow::Result<ExitCode> {
    let recording = recording::read(&args.file)?;
    warn(&args.file, &recording.warnings);
    let actuator = DryRun::new(capacity(&recording, args.cpus));
    let config = args.config.read()?.without_a_machine("onbeat replay")?;
    let history = RefCell::new(RunHistory::default());
    let settings = Settings {
        jobs: Some(history.borrow_mut().listener()),
        ..settings(config, &recording)
    };
    let mut controller = Controller::new(settings, actuator);
    let began = recording.began;
    let mut replayed = replayed(recording, args)?;
    let report_file = Output::of(args.files.report.as_deref())?;
    let perfetto = Output::of(args.files.perfetto.as_deref())?;
    let mut log = Some(LogOutput {
        file: args.files.log.as_deref().map(create).transpose()?,
        output: args.json.then(|| BufWriter::new(io::stdout().lock())),
    });

    let time = OwnTime::now();
    let mut told = Ok(());
    let mut sensor = Tap {
        sensor: &mut replayed,
        history: Some(&history),
        watch: None,
    };
    let outcome = drive(&mut sensor, &mut controller, |_, controller| {
        told = tell(controller, &mut log, Some(&history), &mut None, true);
        if told.is_ok() {
            Next::Continue
        } else {
            Next::Stop
        }
    });
    outcome.context("the recording cannot be replayed")?;
    told.context("cannot write the log")?;
    let report = controller.finish(replayed.now());
    tell(&mut controller, &mut log, Some(&history), &mut None, true)
        .context("cannot write the log")?;
    drop(log);

    let history = history.into_inner();
    let closing = Closing::new(&report, &time, report.elapsed, None, &history);
    if let Some(output) = report_file {
        write_report(output, &closing)?;
    }
    if let Some(output) = perfetto {
        output.write(|file| history.write_timeline(file))?;
    }
    if !args.json {
        let mut output = BufWriter::new(io::stdout().lock());
        if !history.decisions().is_empty() {
            writeln!(output, "{}", table(history.decisions(), began))?;
        }
        write!(
            output,
            "{}",
            run_table::of(&report, Some(closing.loop_cpu), None)
        )?;
        output.flush()?;
    }
    Ok(ExitCode::SUCCESS)
}

struct LogOutput {
    file: Option<BufWriter<File>>,
    output: Option<BufWriter<io::StdoutLock<'static>>>,
}

impl Write for LogOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Some(file) = &mut self.file {
            file.write_all(bytes)?;
        }
        if let Some(output) = &mut self.output {
            output.write_all(bytes)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.as_mut().map_or(Ok(()), Write::flush)?;
        self.output.as_mut().map_or(Ok(()), Write::flush)
    }
}

fn replayed(recording: Recording, args: &ReplayArgs) -> anyhow::Result<Replay> {
    let mut replay = Replay::new(recording);
    if args.pids.is_empty() {
        replay.track_all();
    }
    let follow = Follow::with(args.children);
    for &pid in &args.pids {
        replay.track(pid, follow)?;
    }
    Ok(replay)
}

/// The capacity that this machine's kernel would have with as many CPUs as are asked for, or were
/// recorded.
fn capacity(recording: &Recording, cpus: Option<u32>) -> Capacity {
    let here = kernel::capacity();
    let recorded = recording.facts.as_ref().map(|facts| facts.cpus);
    let cpus = cpus
        .or(recorded.filter(|&cpus| cpus > 0))
        .unwrap_or(here.cpus);
    let of_each = here.admissible.as_cpus() / f64::from(here.cpus.max(1));
    Capacity {
        cpus,
        admissible: Bandwidth::from_cpus(of_each * f64::from(cpus)),
        ..here
    }
}

fn settings(config: RunConfig, recording: &Recording) -> Settings {
    Settings {
        // As live: only where an interrupt can be told from a thread that wakes another one.
        means: AllowedMeans {
            raises: recording.format == Format::Onbeat,
            ..AllowedMeans::default()
        },
        ..config.settings()
    }
}

fn table<'a>(decisions: impl IntoIterator<Item = &'a Entry>, began: Instant) -> TextTable {
    let words = ["thread", "decision", "reservation", "why"];
    let mut columns = ["at", "tid"]
        .map(|heading| (heading, Align::Right))
        .to_vec();
    columns.extend(words.map(|heading| (heading, Align::Left)));
    let mut table = TextTable::new(&columns);
    for entry in decisions {
        let reservation = entry.new.map_or("-".to_owned(), |new| new.to_string());
        table.row([
            format!("{:.3} s", entry.at.since(began).as_secs_f64()),
            entry.task.id.to_string(),
            entry.task.comm.to_text(),
            entry.what.name().replace('-', " "),
            reservation,
            entry.why.to_string(),
        ]);
    }
    table
}
