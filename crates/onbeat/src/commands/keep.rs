//! What `run` and `attach` have in common: the loop on the live machine, its log, and its end.

mod telling;

use std::cell::RefCell;
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Context;
use onbeat_act::cpufreq::{Cpufreq, Tree};
use onbeat_act::cpuset::Partitions;
use onbeat_act::kernel;
use onbeat_act::restore::StateFile;
use onbeat_act::{DeadlineActuator, Options, own};
use onbeat_control::{
    Controller, DryRun, Entry, Next, PipelineSettings, Report, Settings, SpeedEntry, Treatment,
    drive,
};
use onbeat_decide::predictor::Kind;
use onbeat_metrics::Metrics;
use onbeat_model::{Actuator, Bandwidth, Follow, Sensor, Span, Task};
use onbeat_schedulers::reserve::GroupActuator;
use onbeat_sense::bpf::{self, Parser};
use onbeat_sense::energy::{self, Energy};
use onbeat_sense::preparation::Preparation;
use onbeat_sense::tracer::{self, Tracer, Unheard, Wants};
use serde::Serialize;

use crate::cli::{KeepOptions, Pipelines, Through, Weight};
use crate::guard;
use crate::hearing;
use crate::history::{Dropped, History, Place, Tap, ThreadHistory};
use crate::keep_table;
use crate::onlooker::Onlooker;
use crate::own_time::OwnTime;
use telling::attend;
pub(super) use telling::tell;

/// Everything that is ready before the first thread is tracked.
pub(crate) struct Keeper<'a> {
    options: &'a KeepOptions,
    sensor: Tracer,
    log: Option<BufWriter<File>>,
    perfetto: Option<BufWriter<File>>,
    metrics: Option<Metrics>,
    /// If a report or a timeline is wanted.
    history: Option<RefCell<History>>,
    onlooker: Option<Onlooker>,
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
    /// What the processors took meanwhile; none without `--power`, or if they do not tell.
    energy_uj: Option<u64>,
    /// Where they belonged.
    cgroups: Vec<Place<'a>>,
    /// What the threads did.
    history: Vec<ThreadHistory>,
    /// What of it is not kept.
    history_dropped: Dropped,
    /// What was decided for them.
    decisions: &'a VecDeque<Entry>,
    /// What was decided on the speed of the CPUs.
    speed_decisions: &'a VecDeque<SpeedEntry>,
}

impl<'a> Closing<'a> {
    /// Of a loop that began at `since` and heard of so much time.
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
        let parser = hearing::parser(Parser::start_ahead)?;
        // Who may not goes on as an ordinary program, and says so once it acts. One that is never
        // going to act stays one.
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
            bursts: options.predictor().0 != Kind::Rate,
            wakeups: false,
            running,
            partners: options.pipelines == Pipelines::Auto,
            calls: options.tracing.calls.clone(),
        };
        let sensor = hearing::start(&options.tracing, &wants, &parser, options.quiet)
            .context("cannot trace")?;
        let wants_history = perfetto.is_some() || options.report.is_some();
        Ok(Self {
            options,
            sensor,
            log,
            perfetto,
            metrics,
            history: wants_history.then(RefCell::default),
            onlooker: None,
        })
    }

    /// Somebody looks on: no messages while he does.
    pub(crate) fn shown_to(self, onlooker: Option<Onlooker>) -> Self {
        Self { onlooker, ..self }
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

    /// What is to be done for a program before it is executed.
    pub(crate) fn preparation(&self) -> Preparation {
        self.sensor.preparation()
    }

    /// The tracked process `pid` is about to execute `program`.
    pub(crate) fn expect(&mut self, pid: u32, program: &Path) {
        if let Some(why) = Unheard::of(self.sensor.kind(), program) {
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
        if self.options.through == Through::Scx {
            // Before, as the kernel takes its time to look through the scheduler.
            go_first();
            let actuator = GroupActuator::start().context("--through scx")?;
            return self.keep_through(actuator, begin, next);
        }
        let directory = self.options.state.path()?;
        let options = Options {
            hard: self.options.hard,
        };
        // The guard, and threads that try out what the kernel does.
        let actuator = own::start_ahead(|| {
            let state_file = guard::state_file(&directory)?;
            anyhow::Ok(DeadlineActuator::new(state_file, options))
        });
        let mut actuator = actuator?;
        if self.options.power().is_some() {
            actuator = actuator.with_cpufreq(cpufreq(&directory)?);
        }
        if self.options.partition {
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
        let mut controller = Controller::new(settings(self.options, self.sensor.kind()), actuator);
        let time = OwnTime::now();
        let mut meter = self.options.power().and_then(|_| Meter::open());
        let (log, history) = (&mut self.log, self.history.as_ref());
        let quiet = self.options.quiet || self.onlooker.is_some();
        let onlooker = &mut self.onlooker;
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
            if let Some(onlooker) = onlooker
                && onlooker.look(controller, sensor.now()) == Next::Stop
            {
                return Next::Stop;
            }
            next(&mut began)
        });
        let report = controller.finish(self.sensor.now());
        let told = tell(&mut controller, log, history, metrics, quiet);
        drop(controller);
        let looked = self.onlooker.take().map_or(Ok(()), Onlooker::end);
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
            eprint!("{}", keep_table::of(report, closing.loop_cpu, energy_uj));
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
    let mut cpufreq = Cpufreq::new(&Tree::default(), state_file).context("--power")?;
    cpufreq
        .measure_runtimes()
        .context("cannot set the speed of the CPUs")?;
    Ok(cpufreq)
}

/// A CPU for each process, with a state file of their own.
fn partitions(state: &Path) -> anyhow::Result<Partitions> {
    let state_file =
        StateFile::create(state).with_context(|| format!("cannot write to {}", state.display()))?;
    Partitions::make(state_file).context("--partition")
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

fn settings(options: &KeepOptions, tracer: tracer::Kind) -> Settings {
    let (predictor, parameters) = options.predictor();
    let weights = options.weights.clone();
    // No other tracer tells who woke whom, and a whole process must not be moved for one stage of
    // it.
    let finds_pipelines =
        options.pipelines == Pipelines::Auto && tracer == tracer::Kind::Bpf && !options.partition;
    Settings {
        predictor,
        parameters,
        total: options.cap.as_cpus(),
        per_task: options.task_cap,
        minimum: options.minimum,
        power: options.power(),
        method: options.analyser.into(),
        trials: !options.no_trials,
        // Where an interrupt cannot be told from a thread that wakes another one, a batch program
        // seems to have a clock; and a scheduler of onbeat's own gives reservations alone.
        protects: !options.no_trials
            && tracer == tracer::Kind::Bpf
            && bpf::tells_wakers()
            && options.through != Through::Scx,
        pipelines: finds_pipelines.then(|| PipelineSettings {
            outsiders: vec![std::process::id()],
        }),
        treat: Box::new(move |task| Treatment {
            weight: weight(&weights, task),
            ..Treatment::default()
        }),
        ..Settings::default()
    }
}

fn weight(weights: &[Weight], task: &Task) -> f64 {
    let (name, number) = (task.comm.to_text(), task.id.tid.to_string());
    weights
        .iter()
        .rev()
        .find(|weight| weight.task == name || weight.task == number)
        .map_or(1.0, |weight| weight.weight)
}
