//! The common part of `run` and `attach`: the loop on the live machine, its log, and its end.

mod telling;

use std::cell::RefCell;
use std::collections::{HashMap, HashSet, VecDeque};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use onbeat_act::cpufreq::{Cpufreq, Tree};
use onbeat_act::kernel;
use onbeat_act::restore::StateFile;
use onbeat_act::{DeadlineActuator, DeadlineOptions, own, task};
use onbeat_control::{
    AllowedMeans, Controller, DryRun, Entry, Next, Party, PipelineSettings, RAISED, Report,
    Settings, SpeedEntry, drive,
};
use onbeat_daemon::watch::Watch;
use onbeat_kernel::cpus;
use onbeat_kernel::proc::{process_of, ready_tasks};
use onbeat_metrics::Metrics;
use onbeat_model::{Actuator, Bandwidth, Follow, Sensor, Span, TaskId};
use onbeat_sense::bpf;
use onbeat_sense::energy::{self, Energy};
use onbeat_sense::identity;
use onbeat_sense::preparation::Preparation;
use onbeat_sense::tracer::{self, Tracer, Wants};
use serde::Serialize;

use crate::cli::{KeepOptions, MeansChoice, Pipelines};
use crate::config::RunConfig;
use crate::history::{DroppedBursts, RunHistory, Tap, ThreadHistory, ThreadPlace};
use crate::live_view::LiveView;
use crate::own_time::OwnTime;
use crate::run_table;
use crate::start_tracer;
use onbeat_command::guard;
use onbeat_command::output::{Output, create};
use onbeat_command::state::StateDirectory;
use telling::attend;
pub(super) use telling::tell;

/// Everything that is ready before the tracer: the outputs, and what protects a program meanwhile.
pub(crate) struct PreparedRun<'a> {
    options: &'a KeepOptions,
    config: RunConfig,
    log: Option<BufWriter<File>>,
    report: Option<Output>,
    perfetto: Option<Output>,
    metrics: Option<Metrics>,
    view: Option<LiveView>,
    protected: Option<(TaskId, DeadlineActuator)>,
}

/// Everything that is ready before the first thread is tracked.
pub(crate) struct Keeper<'a> {
    prepared: PreparedRun<'a>,
    sensor: Tracer,
    targets: Vec<u32>,
    history: Option<RefCell<RunHistory>>,
}

#[derive(Serialize)]
pub(super) struct Closing<'a> {
    #[serde(flatten)]
    report: &'a Report,
    own_cpu_ns: u64,
    loop_cpu_ns: u64,
    pub(super) loop_cpu: Bandwidth,
    /// The energy of the processors meanwhile; none without `[power]`, or if they do not tell.
    energy_uj: Option<u64>,
    cgroups: Vec<ThreadPlace<'a>>,
    history: Vec<ThreadHistory>,
    history_dropped: DroppedBursts,
    decisions: &'a VecDeque<Entry>,
    speed_decisions: &'a VecDeque<SpeedEntry>,
}

impl<'a> Closing<'a> {
    pub(super) fn new(
        report: &'a Report,
        since: &OwnTime,
        elapsed: Span,
        energy_uj: Option<u64>,
        history: &'a RunHistory,
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

impl<'a> PreparedRun<'a> {
    /// Opens the outputs. To be called before this process has a second thread.
    pub(crate) fn new(options: &'a KeepOptions, view: Option<LiveView>) -> anyhow::Result<Self> {
        // Without the right onbeat goes on as an ordinary program, and says so once it acts. One
        // that is never going to act stays one.
        if !options.dry_run {
            let _ = own::load_first();
        }
        let config = config_of(options)?;
        let log = options.files.log.as_deref().map(create).transpose()?;
        let report = Output::of(options.files.report.as_deref())?;
        let perfetto = Output::of(options.files.perfetto.as_deref())?;
        let metrics = options.metrics.as_ref().map(Metrics::open).transpose()?;
        if let Some(metrics) = metrics.as_ref().filter(|_| !options.quiet) {
            eprintln!("onbeat: metrics are at {}", metrics.place());
        }
        Ok(Self {
            options,
            config,
            log,
            report,
            perfetto,
            metrics,
            view,
            protected: None,
        })
    }

    /// Whether the program may begin before its tracer is loaded: the tracer will be able to join
    /// it, and it can be protected meanwhile. A run that changes nothing, or is to show all that it
    /// hears of a program, waits.
    pub(crate) fn may_protect(&self) -> bool {
        let options = self.options;
        let can_join = || {
            options.tracer.choice().first() == Some(&tracer::TracerKind::Bpf) && bpf::is_likely()
        };
        let may_act = !options.dry_run
            && self.config.means != MeansChoice::Reservations
            // What can refuse a run is tried before its program begins.
            && self.config.power.is_none()
            && (options.always || is_contended());
        may_act && options.also.is_empty() && can_join()
    }

    /// Protects the process `pid`, which is about to execute a program, from its first instruction
    /// on; false if that is refused. It goes first, as the loop has it: this thread has a real-time
    /// priority while it loads the tracer, and the kernel takes a waiting process away from its CPU
    /// only if that has one, too.
    pub(crate) fn protect(&mut self, pid: u32) -> anyhow::Result<bool> {
        let Ok(task) = task::identify(pid) else {
            return Ok(false);
        };
        let mut actuator = live_actuator(self.options)?;
        let is_protected = actuator.boost(task, Some(RAISED)).is_ok();
        self.protected = Some((task, actuator));
        Ok(is_protected)
    }

    /// Starts the tracer. `running` says whether it is going to track processes that run already.
    pub(crate) fn hear(self, running: bool) -> anyhow::Result<Keeper<'a>> {
        let options = self.options;
        let wants = Wants {
            bursts: true,
            running,
            partners: options.pipelines == Pipelines::Auto,
            ..Wants::default()
        };
        let sensor = start_tracer::start(options.tracer.choice(), &wants, options.quiet)
            .context("cannot trace")?;
        let wants_history = self.perfetto.is_some() || self.report.is_some();
        Ok(Keeper {
            prepared: self,
            sensor,
            targets: Vec::new(),
            history: wants_history.then(RefCell::default),
        })
    }
}

impl Keeper<'_> {
    pub(crate) fn track(&mut self, pid: u32) -> anyhow::Result<()> {
        if let Some(why) = task::off_limits(pid) {
            bail!(why);
        }
        self.targets.push(pid);
        self.follow(pid)
    }

    fn follow(&mut self, pid: u32) -> anyhow::Result<()> {
        let follow = Follow::with(self.prepared.options.children);
        self.sensor
            .track(pid, follow)
            .with_context(|| format!("cannot track process {pid}"))
    }

    /// Tracks the program `pid` that began before the tracer, if it has not ended. If children are
    /// to be followed, tracks those that it has started by now, too, with theirs. `orphans` gives
    /// those whose parent has ended.
    ///
    /// The kernel tracks what a tracked process starts. So each process is tracked first, and its
    /// children are listed then, and the orphans last.
    pub(crate) fn track_begun(
        &mut self,
        pid: u32,
        orphans: impl Fn() -> Vec<u32>,
    ) -> anyhow::Result<()> {
        let tracked = self.track(pid);
        // A program that has ended has a status, and nothing to be kept.
        if task::identify(pid).is_ok() {
            tracked?;
        }
        if !self.prepared.options.children {
            return Ok(());
        }
        let mut found = HashSet::from([pid]);
        let mut next = identity::children(pid);
        loop {
            next.extend(orphans());
            next.retain(|&process| found.insert(process));
            if next.is_empty() {
                return Ok(());
            }
            // One that has ended meanwhile cannot be tracked, and its children are orphans.
            next.retain(|&process| self.follow(process).is_ok());
            next = next.into_iter().flat_map(identity::children).collect();
        }
    }

    pub(crate) fn preparation(&self) -> Preparation {
        self.sensor.preparation()
    }

    pub(crate) fn tell_limitation(&self, program: &Path) {
        start_tracer::tell_limitation(&self.sensor, program);
    }

    /// Runs the loop until `next` says stop, or nothing tracked is left, then gives everything back
    /// and reports. `begin` is called when all is ready.
    pub(crate) fn keep<T>(
        mut self,
        begin: impl FnOnce() -> anyhow::Result<T>,
        next: impl FnMut(&mut T) -> Next,
    ) -> anyhow::Result<T> {
        let options = self.prepared.options;
        let targets = std::mem::take(&mut self.targets);
        let settings = Settings {
            jobs: self.history.as_ref().map(|of| of.borrow_mut().listener()),
            ..settings(options, &self.prepared.config, self.sensor.kind(), targets)
        };
        if options.dry_run {
            let actuator = DryRun::new(kernel::capacity());
            return self.keep_through((settings, actuator, None), false, begin, next);
        }
        let is_protected = self.prepared.protected.is_some();
        let mut actuator = match self.prepared.protected.take() {
            Some((task, mut actuator)) => {
                if !settings.means.raises {
                    // It is gone, or another program has changed it meanwhile: nothing is left to
                    // do.
                    let _ = actuator.boost(task, None);
                }
                actuator
            }
            None => live_actuator(options)?,
        };
        let directory = StateDirectory::of_environment()?;
        if self.prepared.config.power.is_some() {
            actuator = actuator.with_cpufreq(cpufreq(&directory)?);
        }
        go_first();
        let watch = self.sensor.meter();
        let watch = watch
            .map(|meter| Watch::start(meter, Span::ZERO, || ()))
            .transpose();
        let watch = watch.context("cannot start the thread that watches priorities")?;
        if let Some(watch) = &watch {
            actuator = actuator.watched_by(watch.clone());
        }
        self.keep_through((settings, actuator, watch), is_protected, begin, next)
    }

    fn keep_through<A: Actuator, T>(
        mut self,
        (settings, actuator, watch): (Settings, A, Option<Watch>),
        is_protected: bool,
        begin: impl FnOnce() -> anyhow::Result<T>,
        mut next: impl FnMut(&mut T) -> Next,
    ) -> anyhow::Result<T> {
        let prepared = &mut self.prepared;
        let mut controller = Controller::new(settings, actuator);
        if is_protected {
            controller.begins_in_need(self.sensor.now());
        }
        let time = OwnTime::now();
        let mut meter = prepared.config.power.and_then(|_| Meter::open());
        let (log, history) = (&mut prepared.log, self.history.as_ref());
        let quiet = prepared.options.quiet || prepared.view.is_some();
        let view = &mut prepared.view;
        let metrics = &mut prepared.metrics;
        let mut write_failed = None;
        let mut sensor = Tap {
            sensor: &mut self.sensor,
            history,
            watch,
        };
        onbeat_control::begin(&mut sensor, &mut controller).context("the tracer failed")?;
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
        let looked = self.prepared.view.take().map_or(Ok(()), LiveView::end);
        let closed = self.close(&report, &time, meter);
        outcome.context("the tracer failed")?;
        looked.context("cannot use the terminal")?;
        let told = write_failed.or(told.err()).map_or(Ok(()), Err);
        // What was run has its own status, whatever became of the files.
        for failure in [closed, told.context("cannot write the log")] {
            if let Err(error) = failure {
                eprintln!("onbeat: {error:#}");
            }
        }
        Ok(began)
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
        if let Some(output) = self.prepared.report.take() {
            write_report(output, &closing)?;
        }
        if let Some(output) = self.prepared.perfetto.take() {
            output.write(|file| history.write_timeline(file))?;
        }
        if !self.prepared.options.quiet {
            eprint!(
                "{}",
                run_table::of(report, Some(closing.loop_cpu), energy_uj)
            );
            if self.prepared.options.dry_run {
                eprintln!("This was a dry run: nothing was changed.");
            }
        }
        Ok(())
    }
}

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

/// The actuator of the live kernel, with the guard that is started first.
fn live_actuator(options: &KeepOptions) -> anyhow::Result<DeadlineActuator> {
    let directory = StateDirectory::of_environment()?;
    let hard = options.hard;
    // The guard, and threads that try out what the kernel does.
    own::start_ahead(|| {
        let state_file = guard::state_file(guard::THIS.as_ref(), &directory)?;
        Ok(DeadlineActuator::new(state_file, DeadlineOptions { hard }))
    })
}

fn go_first() {
    if let Err(error) = own::go_first(own::LOWEST) {
        eprintln!(
            "onbeat: cannot raise its own priority ({error}): it may act late on a busy machine"
        );
    }
}

fn cpufreq(state: &Path) -> anyhow::Result<Cpufreq> {
    let state_file =
        StateFile::create(state).with_context(|| format!("cannot write to {}", state.display()))?;
    let mut cpufreq = Cpufreq::new(&Tree::default(), state_file).context("[power]")?;
    cpufreq
        .measure_runtimes()
        .context("cannot set the speed of the CPUs")?;
    Ok(cpufreq)
}

pub(crate) fn write_report(output: Output, report: &impl Serialize) -> anyhow::Result<()> {
    output.write(|mut file| {
        serde_json::to_writer(&mut file, report)?;
        writeln!(file)?;
        file.flush()
    })
}

/// Whether others want the CPUs now: more threads are ready than there are CPUs, and still are a
/// moment later.
fn is_contended() -> bool {
    let cpus = cpus::online().map_or(1, |cpus| cpus.len());
    let is_busy = || ready_tasks() > cpus as u64;
    is_busy() && {
        std::thread::sleep(Duration::from_millis(1));
        is_busy()
    }
}

fn config_of(options: &KeepOptions) -> anyhow::Result<RunConfig> {
    let mut config = options.config.read()?;
    if options.dry_run {
        config = config.without_a_machine("--dry-run")?;
    }
    if let Some(cap) = options.cap {
        config.budgets.total = cap.as_cpus();
    }
    Ok(config)
}

fn settings(
    options: &KeepOptions,
    config: &RunConfig,
    tracer: tracer::TracerKind,
    targets: Vec<u32>,
) -> Settings {
    let has_children = options.children;
    let origins = Origins::new(targets);
    let means = config.means;
    // No other tracer tells who woke whom.
    let finds_pipelines = options.pipelines == Pipelines::Auto && tracer == tracer::TracerKind::Bpf;
    let always = options.always || tracer != tracer::TracerKind::Bpf;
    // Where an interrupt cannot be told from a thread that wakes another one, a batch program seems
    // to have a clock.
    let raises = means != MeansChoice::Reservations
        && tracer == tracer::TracerKind::Bpf
        && bpf::tells_wakers();
    Settings {
        means: AllowedMeans {
            always,
            raises,
            reserves: match means {
                MeansChoice::Reservations => true,
                MeansChoice::Auto => options.hard || always || !raises,
                MeansChoice::Priority | MeansChoice::Nice => false,
            },
            priority: matches!(means, MeansChoice::Auto | MeansChoice::Priority),
        },
        pipelines: finds_pipelines.then(|| PipelineSettings {
            outsiders: vec![std::process::id()],
        }),
        parties: Box::new(move |task| Party {
            application: has_children.then(|| origins.of(task)).flatten(),
            ..Party::default()
        }),
        ..config.clone().settings()
    }
}

/// Which of the targets has started the process of a thread, itself or by another one.
struct Origins {
    targets: Vec<u32>,
    /// The target of each process that was looked at: its parent may end before it.
    known: RefCell<HashMap<TaskId, u32>>,
}

/// From this number of known processes on, those that have ended are forgotten.
const MANY: usize = 1024;

impl Origins {
    fn new(targets: Vec<u32>) -> Self {
        Self {
            targets,
            known: RefCell::default(),
        }
    }

    /// All that is tracked works for a single target, whether or not the processes between the two
    /// have ended. Among several, none is found if one of those has ended before it was looked at.
    fn of(&self, thread: TaskId) -> Option<u32> {
        if let [only] = self.targets.as_slice() {
            return Some(*only);
        }
        let process = task::identify(process_of(thread.tid)?).ok()?;
        let mut known = self.known.borrow_mut();
        let mut next = process;
        let target = loop {
            if self.targets.contains(&next.tid) {
                break next.tid;
            }
            if let Some(target) = known.get(&next) {
                break *target;
            }
            let parent = identity::parent(next.tid).filter(|&parent| parent != 0)?;
            next = task::identify(parent).ok()?;
        };
        if known.len() >= MANY {
            known.retain(|process, _| task::is_alive(*process));
        }
        known.insert(process, target);
        Some(target)
    }
}
