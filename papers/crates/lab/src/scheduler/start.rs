//! `onbeat-lab scheduler start`: puts a scheduler in force, shows what it does, and takes it out
//! again.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Context;
use onbeat_schedulers::reserve::Reservations;
use onbeat_schedulers::{ALL, Extent, Opened, Running, SchedulerOutcome, find};

use super::chooser::Chooser;
use super::groups;
use super::plans::Plans;
use super::show::Show;
use crate::cli::StartArgs;
use onbeat_command::child::{self, Child, Gated, ProgramEnd};
use onbeat_command::guard;
use onbeat_command::signals::Signals;

/// Between two looks at what has changed. Each costs a scheduled task CPU time.
const TURN: Duration = Duration::from_millis(100);
/// Between two looks through the processes for what is new.
const FOLLOW_EVERY: Duration = Duration::from_millis(500);

enum SchedulerEnd {
    Told,
    Program(ProgramEnd),
    Kernel(SchedulerOutcome),
}

pub(crate) fn run(args: &StartArgs) -> anyhow::Result<ExitCode> {
    let signals = Signals::block().context("cannot listen for signals")?;
    let scheduler = find(&args.name).with_context(|| {
        let known: Vec<&str> = ALL.iter().map(|scheduler| scheduler.name).collect();
        format!(
            "there is no scheduler {}: choose one of {}",
            args.name,
            known.join(", ")
        )
    })?;
    let mut opened = Opened::new(scheduler)?;
    for setting in &args.settings {
        opened.set(&setting.name, setting.value)?;
    }
    let chosen = !args.pids.is_empty() || !args.command.is_empty();
    let extent = if chosen {
        Extent::Chosen
    } else {
        Extent::Whole
    };
    let watchdog = args.watchdog.map(|span| Duration::from_nanos(span.as_ns()));
    let mut running = opened.start(extent, watchdog)?;
    let reservations = groups::admit(&mut running, &args.groups)?;
    let plans = Plans::begin(&mut running, args)?;

    let mut chooser = None;
    let mut program = None;
    if chosen {
        let directory = args.state.path()?;
        let state_file = guard::state_file(&child::sibling("onbeat"), &directory)?;
        let chooser = chooser.insert(Chooser::new(state_file));
        for &pid in &args.pids {
            chooser.choose(pid)?;
        }
        if !args.command.is_empty() {
            let gated = Gated::fork(&args.command).context("cannot start a process")?;
            chooser.choose(gated.pid())?;
            program = Some(gated.open()?);
        }
    }
    Session {
        running,
        reservations,
        chooser,
        program,
        plans,
    }
    .attend(&signals, args)
}

/// A scheduler in force, and the tasks that it schedules.
struct Session {
    running: Running,
    reservations: Reservations,
    plans: Option<Plans>,
    chooser: Option<Chooser>,
    program: Option<Child>,
}

impl Session {
    fn attend(mut self, signals: &Signals, args: &StartArgs) -> anyhow::Result<ExitCode> {
        let interval = Duration::from_nanos(args.interval.as_ns());
        let mut show = Show::new(args, self.chooser.is_some());
        let mut next_follow = Instant::now();
        let mut next_show = Instant::now() + interval;
        let end = loop {
            if let Some(end) = self.end(signals) {
                break end;
            }
            let now = Instant::now();
            if now >= next_follow {
                if let Some(chooser) = &mut self.chooser {
                    chooser.follow();
                }
                groups::fit(&mut self.running, &mut self.reservations);
                next_follow = now + FOLLOW_EVERY;
            }
            if let Some(plans) = &mut self.plans {
                plans.turn(&mut self.running)?;
            }
            if now >= next_show {
                self.show(&mut show)?;
                next_show += interval;
            }
            std::thread::sleep(TURN.min(interval));
        };
        self.show(&mut show)?;
        show.close(&groups::told(&mut self.running, &self.reservations))?;
        let name = self.running.name();
        self.running.stop();
        // Puts the chosen tasks back.
        drop(self.chooser);
        Ok(match end {
            SchedulerEnd::Told => ExitCode::SUCCESS,
            SchedulerEnd::Program(status) => status.code(),
            SchedulerEnd::Kernel(outcome) => {
                let code = ExitCode::from(u8::from(outcome.is_failure));
                eprintln!(
                    "onbeat-lab: the kernel has ended {name} and is back at its own scheduler: {}",
                    told(&outcome)
                );
                match self.program {
                    Some(mut program) => program.wait().map_or(code, ProgramEnd::code),
                    None => code,
                }
            }
        })
    }

    fn show(&mut self, show: &mut Show) -> anyhow::Result<()> {
        let groups = groups::told(&mut self.running, &self.reservations);
        show.turn(&self.running, self.chooser.as_ref(), groups)
    }

    fn end(&mut self, signals: &Signals) -> Option<SchedulerEnd> {
        while let Some(signal) = signals.next() {
            match (signal.number, &mut self.program) {
                (libc::SIGCHLD | libc::SIGWINCH, _) => {}
                (_, Some(program)) if !signal.from_terminal => program.signal(signal.number),
                (_, Some(_)) => {}
                (libc::SIGINT | libc::SIGTERM | libc::SIGHUP | libc::SIGQUIT, None) => {
                    return Some(SchedulerEnd::Told);
                }
                (_, None) => {}
            }
        }
        if let Some(status) = self.program.as_mut().and_then(Child::ended) {
            return Some(SchedulerEnd::Program(status));
        }
        self.running.outcome().map(SchedulerEnd::Kernel)
    }
}

fn told(outcome: &SchedulerOutcome) -> String {
    if outcome.message.is_empty() {
        outcome.reason.clone()
    } else {
        format!("{} ({})", outcome.reason, outcome.message)
    }
}
