//! The common part of `run` and `attach`: the loop on the live machine, its log, and its end.

mod telling;

use std::cell::RefCell;
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use onbeat_act::cpufreq::{Cpufreq, Tree};
use onbeat_act::cpuset::Partitions;
use onbeat_act::kernel;
use onbeat_act::restore::StateFile;
use onbeat_act::{DeadlineActuator, Options, own};
use onbeat_control::{
    Controller, DryRun, Entry, Next, PipelineSettings, Report, Settings, SpeedEntry, drive,
};
use onbeat_metrics::Metrics;
use onbeat_model::{Actuator, Bandwidth, Follow, Sensor, Span};
use onbeat_schedulers::reserve::GroupActuator;
use onbeat_sense::bpf::{self, Parser};
use onbeat_sense::energy::{self, Energy};
use onbeat_sense::preparation::Preparation;
use onbeat_sense::tracer::{self, Limitation, Tracer, Wants};
use serde::Serialize;

use crate::cli::{KeepOptions, Pipelines, StateDirectory, Through};
use crate::config::Config;
use crate::guard;
use crate::history::{Dropped, History, Place, Tap, ThreadHistory};
use crate::live_view::LiveView;
use crate::own_time::OwnTime;
use crate::run_table;
use crate::start_tracer;
use telling::attend;
pub(super) use telling::tell;

/// Everything that is ready before the first thread is tracked.
pub(crate) struct Keeper<'a> {
    options: &'a KeepOptions,
    config: Config,
    sensor: Tracer,
    log: Option<BufWriter<File>>,
    perfetto: Option<BufWriter<File>>,
    metrics: Option<Metrics>,
    /// If a report or a timeline is wanted.
    history: Option<RefCell<History>>,
    view: Option<LiveView>,
}

/// How it ended.
#[derive(Serialize)]
pub(super) struct Closing<'a> {
    #[serde(flatten)]
    report: &'a Report,
    /// onbeat's own CPU time from its start to its end.
    own_cpu_ns: u64,
    /// The same, from the first turn of the loop on.
    loop_cpu_ns: u64,
    /// That, as a share of one CPU.
    pub(super) loop_cpu: Bandwidth,
    /// The energy of the processors meanwhile; none without `[power]`, or if they do not tell.
    energy_uj: Option<u64>,
    /// Where they belonged.
    cgroups: Vec<Place<'a>>,
    /// The bursts of the threads.
    history: Vec<ThreadHistory>,
    /// The parts that are not kept.
    history_dropped: Dropped,
    /// The decisions for them.
    decisions: &'a VecDeque<Entry>,
    /// The decisions on the speed of the CPUs.
    speed_decisions: &'a VecDeque<SpeedEntry>,
}

impl<'a> Closing<'a> {
    /// The closing of a loop that began at `since` and lasted `elapsed`.
    pub(super) fn new(
        report: &'a Report,
        since: &OwnTime,
        elapsed: Span,
        energy_uj: Option<u64>,
        history: &'a History,
    ) -> Self {
        let used = OwnTime::now();
        let loop_cpu = used.cpu - since.cpu;
        Self {
            report,
            own_cpu_ns: used.cpu.as_ns(),
            loop_cpu_ns: loop_cpu.as_ns(),
            loop_cpu: Bandwidth::of(loop_cpu, elapsed),
            energy_uj,
            cgroups: history.places(),
            history: history.threads(),
            history_dropped: history.dropped(),
            decisions: history.decisions(),
            speed_decisions: history.speed_decisions(),
        }
    }
}

impl<'a> Keeper<'a> {
    /// Starts the tracer and opens the log. Whether it is going to track processes that run already
    /// is for the caller to say.
    pub(crate) fn new(options: &'a KeepOptions, running: bool) -> anyhow::Result<Self> {
        let parser = start_tracer::parser(Parser::start_ahead)?;
        let config = config_of(options)?;
        // Without the right onbeat goes on as an ordinary program, and says so once it acts. One
        // that is never going to act stays one.
        if !options.dry_run {
            let _ = own::load_first();
        }
        let log = options.log.as_deref().map(create).transpose()?;
        let perfetto = options.perfetto.as_deref().map(create).transpose()?;
        let metrics = options.metrics.as_ref().map(Metrics::open).transpose()?;
        if let Some(metrics) = metrics.as_ref().filter(|_| !options.quiet) {
            eprintln!("onbeat: metrics are at {}", metrics.place());
        }
        let wants = Wants {
            bursts: true,
            running,
            partners: options.pipelines == Pipelines::Auto,
            ..Wants::default()
        };
        let sensor = start_tracer::start(options.tracer.choice(), &wants, &parser, options.quiet)
            .context("cannot trace")?;
        let wants_history = perfetto.is_some() || options.report.is_some();
        Ok(Self {
            options,
            config,
            sensor,
            log,
            perfetto,
            metrics,
            history: wants_history.then(RefCell::default),
            view: None,
        })
    }

    /// A user looks on: no messages while he does.
    pub(crate) fn shown_to(self, view: Option<LiveView>) -> Self {
        Self { view, ..self }
    }

    /// Tracks the process `pid` with all its threads, and what the options say to follow.
    pub(crate) fn track(&mut self, pid: u32) -> anyhow::Result<()> {
        let follow = if self.options.children {
            Follow::Children
        } else {
            Follow::Threads
        };
        self.sensor
            .track(pid, follow)
            .with_context(|| format!("cannot track process {pid}"))
    }

    /// The steps before a program is executed.
    pub(crate) fn preparation(&self) -> Preparation {
        self.sensor.preparation()
    }

    /// The tracked process `pid` is about to execute `program`.
    pub(crate) fn expect(&mut self, pid: u32, program: &Path) {
        if let Some(why) = Limitation::of(self.sensor.kind(), program) {
            eprintln!("onbeat: {} {why}", program.display());
        }
        // The dynamic linker, which says what the program maps.
        own::start_ahead(|| self.sensor.expect(pid, program));
    }

    /// Runs the loop until `next` says stop, or nothing tracked is left, then gives everything back
    /// and reports. `begin` is called when all is ready.
    pub(crate) fn keep<T>(
        self,
        begin: impl FnOnce() -> anyhow::Result<T>,
        next: impl FnMut(&mut T) -> Next,
    ) -> anyhow::Result<T> {
        if self.options.dry_run {
            let actuator = DryRun::new(kernel::capacity());
            return self.keep_through(actuator, begin, next);
        }
        if self.config.enforcement.through() == Through::Scx {
            // Before, as the kernel takes its time to look through the scheduler.
            go_first();
            let actuator = GroupActuator::start().context("enforcement.through = \"scx\"")?;
            return self.keep_through(actuator, begin, next);
        }
        let directory = StateDirectory::of_environment()?;
        let options = Options {
            hard: self.options.hard,
        };
        // The guard, and threads that try out what the kernel does.
        let actuator = own::start_ahead(|| {
            let state_file = guard::state_file(&directory)?;
            anyhow::Ok(DeadlineActuator::new(state_file, options))
        });
        let mut actuator = actuator?;
        if self.config.power.is_some() {
            actuator = actuator.with_cpufreq(cpufreq(&directory)?);
        }
        if self.config.enforcement.partition() {
            actuator = actuator.with_partitions(partitions(&directory)?);
        }
        go_first();
        self.keep_through(actuator, begin, next)
    }

    fn keep_through<A: Actuator, T>(
        mut self,
        actuator: A,
        begin: impl FnOnce() -> anyhow::Result<T>,
        mut next: impl FnMut(&mut T) -> Next,
    ) -> anyhow::Result<T> {
        let settings = settings(self.options, &self.config, self.sensor.kind());
        let mut controller = Controller::new(settings, actuator);
        let time = OwnTime::now();
        let mut meter = self.config.power.and_then(|_| Meter::open());
        let (log, history) = (&mut self.log, self.history.as_ref());
        let quiet = self.options.quiet || self.view.is_some();
        let view = &mut self.view;
        let metrics = &mut self.metrics;
        let mut write_failed = None;
        let mut sensor = Tap {
            sensor: &mut self.sensor,
            history,
        };
        onbeat_control::begin(&mut sensor, &mut controller).context("tracing broke off")?;
        let mut began = begin()?;
        let outcome = drive(&mut sensor, &mut controller, |sensor, controller| {
            if let Err(error) = tell(controller, log, history, metrics, quiet) {
                write_failed.get_or_insert(error);
                *log = None;
            }
            attend(metrics, controller, sensor.now());
            meter.iter_mut().for_each(Meter::look);
            if let Some(view) = view
                && view.look(controller, sensor.now()) == Next::Stop
            {
                return Next::Stop;
            }
            next(&mut began)
        });
        let report = controller.finish(self.sensor.now());
        let told = tell(&mut controller, log, history, metrics, quiet);
        drop(controller);
        let looked = self.view.take().map_or(Ok(()), LiveView::end);
        self.close(&report, &time, meter)?;
        outcome.context("tracing broke off")?;
        looked.context("cannot use the terminal")?;
        match write_failed.or(told.err()) {
            Some(error) => Err(error).context("cannot write the log"),
            None => Ok(began),
        }
    }

    fn close(
        &mut self,
        report: &Report,
        since: &OwnTime,
        meter: Option<Meter>,
    ) -> anyhow::Result<()> {
        let energy_uj = meter.map(|mut meter| meter.energy.read_uj());
        let history = self.history.take().unwrap_or_default().into_inner();
        let elapsed = OwnTime::now().at.since(since.at);
        let closing = Closing::new(report, since, elapsed, energy_uj, &history);
        if let Some(path) = &self.options.report {
            write_report(path, &closing)?;
        }
        if let Some((output, path)) = self.perfetto.take().zip(self.options.perfetto.as_deref()) {
            let written = history.write_timeline(output);
            written.with_context(|| format!("cannot write {}", path.display()))?;
        }
        if let Some(error) = self.sensor.deaf() {
            eprintln!(
                "onbeat: some marks and notifications of programs were not received: {error}"
            );
        }
        if !self.options.quiet {
            eprint!("{}", run_table::of(report, closing.loop_cpu, energy_uj));
        }
        Ok(())
    }
}

/// The processors' counters of energy.
struct Meter {
    energy: Energy,
    looked: Instant,
}

impl Meter {
    /// Far more often than a counter begins anew.
    const EVERY: Duration = Duration::from_secs(10);

    fn open() -> Option<Self> {
        Some(Self {
            energy: Energy::open(Path::new(energy::POWERCAP))?,
            looked: Instant::now(),
        })
    }

    fn look(&mut self) {
        if self.looked.elapsed() >= Self::EVERY {
            self.looked = Instant::now();
            self.energy.read_uj();
        }
    }
}

fn go_first() {
    if let Err(error) = own::go_first(own::LOWEST) {
        eprintln!("onbeat: cannot raise its own priority ({error}): budgets may change late");
    }
}

/// The speed of the CPUs, with a state file of its own.
fn cpufreq(state: &Path) -> anyhow::Result<Cpufreq> {
    let state_file =
        StateFile::create(state).with_context(|| format!("cannot write to {}", state.display()))?;
    let mut cpufreq = Cpufreq::new(&Tree::default(), state_file).context("[power]")?;
    cpufreq
        .measure_runtimes()
        .context("cannot set the speed of the CPUs")?;
    Ok(cpufreq)
}

/// A CPU for each process, with a state file of their own.
fn partitions(state: &Path) -> anyhow::Result<Partitions> {
    let state_file =
        StateFile::create(state).with_context(|| format!("cannot write to {}", state.display()))?;
    Partitions::make(state_file).context("enforcement.partition")
}

/// One object, as `--report` has it.
pub(crate) fn write_report(path: &Path, report: &impl Serialize) -> anyhow::Result<()> {
    let mut file = create(path)?;
    serde_json::to_writer(&mut file, report)
        .map_err(io::Error::from)
        .and_then(|()| writeln!(file))
        .and_then(|()| file.flush())
        .with_context(|| format!("cannot write {}", path.display()))
}

pub(crate) fn create(path: &Path) -> anyhow::Result<BufWriter<File>> {
    let file = File::create(path).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(BufWriter::new(file))
}

/// The settings of `--config`, and the flags that win over them.
fn config_of(options: &KeepOptions) -> anyhow::Result<Config> {
    let mut config = options.config.read()?;
    if options.dry_run {
        config = config.without_a_machine("--dry-run")?;
    }
    if options.hard && config.enforcement.through() == Through::Scx {
        bail!("enforcement.through = \"scx\" has no hard reservations: leave out --hard");
    }
    if let Some(cap) = options.cap {
        config.budgets.total = cap.as_cpus();
    }
    Ok(config)
}

fn settings(options: &KeepOptions, config: &Config, tracer: tracer::Kind) -> Settings {
    let enforcement = config.enforcement;
    // No other tracer tells who woke whom, and a whole process must not be moved for one stage of
    // it.
    let finds_pipelines = options.pipelines == Pipelines::Auto
        && tracer == tracer::Kind::Bpf
        && !enforcement.partition();
    Settings {
        trials: !options.no_trials,
        // Where an interrupt cannot be told from a thread that wakes another one, a batch program
        // seems to have a clock; and a scheduler of onbeat's own gives reservations alone.
        protects: !options.no_trials
            && tracer == tracer::Kind::Bpf
            && bpf::tells_wakers()
            && enforcement.through() != Through::Scx,
        pipelines: finds_pipelines.then(|| PipelineSettings {
            outsiders: vec![std::process::id()],
        }),
        ..config.clone().settings()
    }
}
