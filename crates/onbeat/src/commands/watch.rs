//! `onbeat watch`: the rhythm of an ordinary user's own program, with nothing changed.

use std::io::{self, BufWriter, IsTerminal, Write};
use std::process::ExitCode;

use anyhow::Context;
use onbeat_control::Next;
use onbeat_model::{Event, Flow, Follow, Instant, Sensor, Span};
use onbeat_sense::tracer::{Tracer, TracerKind, Wants};

use super::keep::write_report;
use super::run::ChildProgram;
use crate::cli::WatchArgs;
use crate::history::{RecordedThread, RunHistory};
use crate::start_tracer;
use crate::watch_table;
use onbeat_command::child::Gated;
use onbeat_command::output::Output;
use onbeat_command::signals::Signals;

const PACE: Span = Span::from_ms(100);
const LINE_EVERY: Span = Span::from_secs(1);

pub(crate) fn run(args: &WatchArgs) -> anyhow::Result<ExitCode> {
    let signals = Signals::block().context("cannot listen for signals")?;
    let wants = Wants {
        bursts: args.tracing.choice().len() > 1,
        calls: args.tracing.calls.clone(),
        ..Wants::default()
    };
    let mut tracer =
        start_tracer::start(args.tracing.choice(), &wants, args.quiet).context("cannot trace")?;
    let report_file = Output::of(args.files.report.as_deref())?;
    let perfetto = Output::of(args.files.perfetto.as_deref())?;
    let follow = Follow::with(args.children);
    let gated =
        Gated::prepared(&args.command, tracer.preparation()).context("cannot start a process")?;
    let pid = gated.pid();
    tracer
        .track(pid, follow)
        .with_context(|| format!("cannot track process {pid}"))?;
    if let Some(program) = gated.executable() {
        start_tracer::tell_limitation(&tracer, &program);
    }
    let mut program = ChildProgram::new(gated.open()?);
    let heard = WatchedThreads::listen(&mut tracer, &mut program, &signals, !args.quiet)?;
    if let Some(output) = report_file {
        write_report(output, &heard.history.report(heard.lasted, heard.lost))?;
    }
    if let Some(output) = perfetto {
        output.write(|file| heard.history.write_timeline(file))?;
    }
    heard.tell(args, &tracer)?;
    Ok(program.code())
}

struct WatchedThreads {
    history: RunHistory,
    bursts: u64,
    lost: u64,
    lasted: Span,
}

impl WatchedThreads {
    fn listen(
        tracer: &mut Tracer,
        program: &mut ChildProgram,
        signals: &Signals,
        chatty: bool,
    ) -> anyhow::Result<Self> {
        let began = tracer.now();
        let mut line = TerminalLine::new(chatty, began);
        let mut heard = Self {
            history: RunHistory::default(),
            bursts: 0,
            lost: 0,
            lasted: Span::ZERO,
        };
        let mut events = Vec::new();
        loop {
            events.clear();
            let flow = tracer
                .poll(PACE, &mut events)
                .context("the tracer failed")?;
            heard.hear(&events);
            heard.lasted = tracer.now().since(began);
            line.show(tracer.now(), &heard);
            if flow == Flow::Ended {
                program.wait();
                break;
            }
            if program.attend(signals) == Next::Stop {
                break;
            }
        }
        line.end();
        heard.history.count_all();
        Ok(heard)
    }

    fn hear(&mut self, events: &[Event]) {
        self.history.hear(events);
        for event in events {
            match event {
                Event::Burst(_) => self.bursts += 1,
                Event::Lost { count, .. } => self.lost = self.lost.saturating_add(*count),
                _ => {}
            }
        }
    }

    fn tell(&self, args: &WatchArgs, tracer: &Tracer) -> anyhow::Result<()> {
        let threads: Vec<RecordedThread> = self.history.report(self.lasted, self.lost).threads;
        if args.json {
            let mut output = BufWriter::new(io::stdout().lock());
            for thread in &threads {
                writeln!(output, "{}", serde_json::to_string(thread)?)?;
            }
            output.flush()?;
        } else if !args.quiet {
            eprint!("{}", watch_table::of(&threads));
        }
        if !args.quiet {
            eprintln!(
                "{} bursts in {:.1} s by the {} tracer, {} lost.",
                self.bursts,
                self.lasted.as_secs_f64(),
                tracer.kind(),
                self.lost
            );
            if args.tracing.choice().len() > 1 && tracer.kind() == TracerKind::Perf {
                eprintln!(
                    "This tracer sees when a thread runs, not when it is woken: on a busy machine, --tracer preload \
                     finds a period better."
                );
            }
        }
        Ok(())
    }
}

struct TerminalLine {
    visible: bool,
    shown: Instant,
}

impl TerminalLine {
    fn new(chatty: bool, now: Instant) -> Self {
        Self {
            visible: chatty && io::stderr().is_terminal(),
            shown: now,
        }
    }

    fn show(&mut self, now: Instant, heard: &WatchedThreads) {
        if self.visible && now.since(self.shown) >= LINE_EVERY {
            self.shown = now;
            let (seconds, bursts) = (heard.lasted.as_secs_f64(), heard.bursts);
            let rhythms = heard.history.busiest_rhythms();
            eprint!("\r\x1b[K{seconds:.0} s, {bursts} bursts; {rhythms}");
        }
    }

    fn end(&self) {
        if self.visible {
            eprint!("\r\x1b[K");
        }
    }
}
