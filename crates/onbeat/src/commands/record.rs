//! `onbeat record`: what a program's threads do, to a file, for `onbeat analyze`.

use std::fs::File;
use std::io::{self, BufWriter, IsTerminal};
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;
use onbeat_model::{Event, Flow, Follow, Instant, Sensor, Span};
use onbeat_sense::recording::{Facts, Writer};
use onbeat_sense::tracer::Wants;
use onbeat_timeline::Schedule;

use crate::cli::{RecordArgs, RecordFormat};
use crate::start_tracer;
use onbeat_command::child::{Child, Gated};
use onbeat_command::signals::Signals;

const PACE: Span = Span::from_ms(100);

pub(crate) fn run(args: &RecordArgs) -> anyhow::Result<ExitCode> {
    let signals = Signals::block().context("cannot listen for signals")?;
    let wants = Wants {
        bursts: false,
        wakeups: args.wakeups,
        running: !args.pids.is_empty(),
        partners: false,
        calls: args.tracing.calls.clone(),
    };
    let mut sensor = start_tracer::start(args.tracing.choice(), &wants, args.quiet)?;
    let follow = Follow::with(args.children);
    for &pid in &args.pids {
        sensor.track(pid, follow)?;
    }
    let gated = if args.command.is_empty() {
        None
    } else {
        let gated = Gated::prepared(&args.command, sensor.preparation())
            .context("cannot start a process")?;
        sensor.track(gated.pid(), follow)?;
        if let Some(program) = gated.executable() {
            start_tracer::tell_limitation(&sensor, &program);
        }
        Some(gated)
    };
    let command: Vec<String> = args
        .command
        .iter()
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    let mut output = Output::create(args.format, &args.output, &command)?;
    let child = gated
        .map(|gated| gated.open().map_err(|failure| anyhow::anyhow!("{failure}")))
        .transpose()?;

    let mut tally = RecordTally::new(sensor.now(), args.quiet);
    let mut session = RecordSession {
        child,
        signals,
        ends: args.duration.map(|duration| sensor.now() + duration),
        asked_to_end: false,
    };
    let mut events = Vec::new();
    loop {
        events.clear();
        let over = session.is_over(sensor.now());
        let flow = sensor.poll(if over { Span::ZERO } else { PACE }, &mut events)?;
        for event in &events {
            output.write(event)?;
            tally.count(event);
        }
        tally.show_progress(sensor.now());
        if over || flow == Flow::Ended {
            break;
        }
    }
    output.finish(&args.output)?;
    tally.show_result(sensor.now(), args);
    Ok(ExitCode::SUCCESS)
}

enum Output {
    Own(Writer),
    Perfetto(Schedule<BufWriter<File>>),
}

impl Output {
    fn create(format: RecordFormat, path: &Path, command: &[String]) -> anyhow::Result<Self> {
        Ok(match format {
            RecordFormat::Onbeat => Self::Own(Writer::create(path, &Facts::gather(command))?),
            RecordFormat::Perfetto => {
                let file = File::create(path).with_context(|| cannot_write(path))?;
                Self::Perfetto(Schedule::new(BufWriter::new(file)))
            }
        })
    }

    fn write(&mut self, event: &Event) -> anyhow::Result<()> {
        match self {
            Self::Own(writer) => writer.write(event)?,
            Self::Perfetto(schedule) => schedule.hear(event),
        }
        Ok(())
    }

    fn finish(self, path: &Path) -> anyhow::Result<()> {
        match self {
            Self::Own(writer) => writer.finish()?,
            Self::Perfetto(schedule) => schedule.finish().with_context(|| cannot_write(path))?,
        }
        Ok(())
    }
}

fn cannot_write(path: &Path) -> String {
    format!("cannot write the recording {}", path.display())
}

struct RecordSession {
    child: Option<Child>,
    signals: Signals,
    ends: Option<Instant>,
    asked_to_end: bool,
}

impl RecordSession {
    /// Looks at the program, the signals and the clock. A program that was started is asked to end
    /// first, and recorded to its end; asked a second time, the recording does not wait for it.
    fn is_over(&mut self, now: Instant) -> bool {
        while let Some(signal) = self.signals.next() {
            match signal.number {
                libc::SIGCHLD | libc::SIGWINCH => {}
                libc::SIGUSR1 | libc::SIGUSR2 => self.pass_on(signal.number),
                number => {
                    if self.asked_to_end || self.child.is_none() {
                        return true;
                    }
                    self.asked_to_end = true;
                    if !signal.from_terminal {
                        self.pass_on(number);
                    }
                }
            }
        }
        if self.ends.is_some_and(|end| now >= end) {
            self.ends = None;
            if self.child.is_none() {
                return true;
            }
            self.asked_to_end = true;
            self.pass_on(libc::SIGTERM);
        }
        self.child
            .as_mut()
            .is_some_and(|child| child.ended().is_some())
    }

    fn pass_on(&mut self, signal: i32) {
        if let Some(child) = &mut self.child {
            child.signal(signal);
        }
    }
}

struct RecordTally {
    began: Instant,
    threads: u64,
    bursts: u64,
    lost: u64,
    progress: bool,
}

impl RecordTally {
    fn new(began: Instant, quiet: bool) -> Self {
        Self {
            began,
            threads: 0,
            bursts: 0,
            lost: 0,
            progress: !quiet && io::stderr().is_terminal(),
        }
    }

    fn count(&mut self, event: &Event) {
        match event {
            Event::Tracked { .. } => self.threads += 1,
            Event::Burst(_) => self.bursts += 1,
            Event::Lost { count, .. } => self.lost = self.lost.saturating_add(*count),
            _ => {}
        }
    }

    fn figures(&self, now: Instant) -> String {
        format!(
            "{:.1} s, {} threads, {} bursts, {} lost",
            now.since(self.began).as_secs_f64(),
            self.threads,
            self.bursts,
            self.lost
        )
    }

    fn show_progress(&self, now: Instant) {
        if self.progress {
            eprint!("\r{}", self.figures(now));
        }
    }

    fn show_result(&self, now: Instant, args: &RecordArgs) {
        if self.progress {
            eprintln!();
        }
        let file = args.output.display();
        if !args.quiet {
            eprintln!("{file}: {}", self.figures(now));
        }
        if self.lost > 0 {
            eprintln!(
                "onbeat: {} events were lost because onbeat did not get to run in time: {file} is incomplete \
                 where it says 'lost'; record again while the machine does less",
                self.lost
            );
        }
    }
}
