//! The service from its start to its end.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Instant;

use anyhow::{Context, bail};
use onbeat_act::restore::{self, StateFile};
use onbeat_act::{DeadlineActuator, Priorities, own};
use onbeat_control::{AllowedMeans, Controller, Next, PipelineSettings, Settings, drive};
use onbeat_metrics::{Metrics, MetricsTarget};
use onbeat_model::Sensor;
use onbeat_sense::bpf::{self, BpfSensor};
use rustix::thread::{CapabilitySet, capabilities, set_capabilities};

use crate::bus;
use crate::config::{self, Config, ConfigError, Sources};
use crate::directory;
use crate::fault::Fault;
use crate::filtered_sensor::FilteredSensor;
use crate::ledger::Ledger;
use crate::logs;
use crate::publisher::Publisher;
use crate::quota::{Quotas, SEATS, users_at};
use crate::quota_actuator::QuotaActuator;
use crate::registry::{Registry, SharedRegistry};
use crate::reload::Reload;
use crate::request::{RequestSender, answer};
use crate::service::Service;
use crate::watch::{LENT, Watch};
use crate::watchdog::{self, Watchdog};

/// The most changes that wait to be told on the bus. 64 tasks that each change four times in a
/// minute fill it in four minutes.
const MOST_UNTOLD: usize = 1024;

#[derive(Clone, Debug)]
pub struct ServiceOptions {
    pub sources: Sources,
    /// Where it is noted what has to be put back.
    pub state: PathBuf,
    pub metrics: Option<MetricsTarget>,
    /// Whether it serves callers on the system bus. Without one, only rules say what is tracked.
    pub has_bus: bool,
    /// At the end, priorities of RealtimeKit's clients stay, for the next service to take over.
    pub hand_over: bool,
}

/// Reads the configuration, and looks up users and groups in it.
/// Fails if something in it is not right: where, and what to do.
pub fn read(sources: &Sources) -> Result<(Config, Quotas), ConfigError> {
    let mut config = config::read(sources)?;
    config.look_up_users();
    let quotas = config.quotas()?;
    Ok((config, quotas))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    End,
    Reload,
}

/// A panic of any other thread than this one ends the process: without the bus's thread the loop
/// would go on without a caller. This thread's own panic unwinds, which gives everything back.
fn end_on_a_panic_elsewhere() {
    let (told, own) = (std::panic::take_hook(), std::thread::current().id());
    std::panic::set_hook(Box::new(move |panic| {
        told(panic);
        if std::thread::current().id() != own {
            std::process::abort();
        }
    }));
}

/// Serves until told to end; then every task gets its former scheduling back. `told` is asked each
/// turn for a signal that came.
/// Fails if something that it needs is not there, or is no more: the bus, BPF, a place for the
/// state file.
pub fn run(
    options: &ServiceOptions,
    mut told: impl FnMut() -> Option<Signal>,
) -> anyhow::Result<()> {
    let began = Instant::now();
    logs::begin();
    end_on_a_panic_elsewhere();
    let given = options.sources.given_now();
    let (mut config, quotas) = read(&options.sources)?;
    let started = config.clone();
    let state_file = || {
        StateFile::create(&options.state)
            .with_context(|| format!("cannot write to {}", options.state.display()))
    };
    let actuator = DeadlineActuator::new(state_file()?, onbeat_act::DeadlineOptions::default());
    // Made after the other's state file, because it is to be undone after it.
    let mut priorities = Priorities::new(state_file()?);
    if options.hand_over {
        priorities.leave_in_force();
    }
    put_back_the_past(options, config.realtimekit.and(Some(&mut priorities)))?;
    let registry = Rc::new(RefCell::new(Registry::new(Ledger::new(quotas))));
    let tracing = bpf::BpfOptions {
        endless: true,
        partners: config.pipelines,
        tell_programs: true,
        bound_bursts: true,
        ..bpf::BpfOptions::default()
    };
    let mut sensor = BpfSensor::new(tracing).context("cannot trace")?;
    load_no_more(&mut sensor).context("cannot give up rights")?;
    // Before this thread goes ahead of others: that one is to have an ordinary priority.
    directory::begin();
    if sensor.mark_hook() == bpf::MarkHook::Unheard {
        tracing::warn!("programs' marks of their jobs are not received ('onbeat doctor' says why)");
    }
    let waker = sensor.waker();
    let watch = Watch::start(sensor.meter(), LENT, move || waker.wake());
    registry.borrow_mut().watch =
        Some(watch.context("cannot start the thread that watches priorities")?);
    let sources = options.sources.clone();
    let mut reload = Reload::new(move || read(&sources), sensor.waker());
    let (sender, requests) = RequestSender::new(sensor.waker());
    let (changes, untold) = async_channel::bounded(MOST_UNTOLD);
    let metrics = options.metrics.as_ref().map(Metrics::open).transpose()?;
    if let Some(metrics) = &metrics {
        tracing::info!("metrics are at {}", metrics.place());
    }
    let publisher = Publisher::new(changes, sensor.now(), metrics);
    let bounded = QuotaActuator::new(actuator, Rc::clone(&registry), sensor.ends());
    let mut sensor = FilteredSensor::new(sensor, Rc::clone(&registry));
    let mut controller = Controller::new(settings(&config, &registry), bounded);
    let mut service = Service::new(
        Rc::clone(&registry),
        priorities,
        requests,
        publisher,
        &config,
    );
    let served = options
        .has_bus
        .then(|| bus::serve(&sender, untold, config.realtimekit))
        .transpose()?;
    service.adopt(&mut sensor, &mut controller);
    let mut greatest = granted(&config);
    go_first(greatest);
    tracing::info!(
        "serving {}, {} ms after it was started",
        if options.has_bus { bus::NAME } else { "rules" },
        began.elapsed().as_millis()
    );
    let mut watchdog = Watchdog::new();
    watchdog::ready();
    let (mut given, mut looked) = (given, onbeat_model::Instant::ZERO);
    let outcome = drive(&mut sensor, &mut controller, |sensor, controller| {
        watchdog.turned(sensor.now());
        let asked = service.take_reloads();
        if !asked.is_empty() {
            reload.want(asked);
        }
        if sensor.now().since(looked) >= config.rules.scan {
            looked = sensor.now();
            let seated = users_at(Path::new(SEATS));
            registry.borrow_mut().ledger.set_seated(seated, looked);
            let before = std::mem::replace(&mut given, options.sources.given_now());
            if before != given {
                reload.want(Vec::new());
            }
        }
        while let Some(told) = told() {
            match told {
                Signal::End => return Next::Stop,
                Signal::Reload => reload.want(Vec::new()),
            }
        }
        if let Some((how, waiting)) = reload.turn() {
            let how = how.map(|(new, quotas)| {
                registry.borrow_mut().ledger.set_quotas(quotas);
                controller.set_settings(settings(&new, &registry));
                service.configure(&new, sensor, controller);
                if config.realtimekit != new.realtimekit {
                    if let Some(served) = &served {
                        served.serve_realtimekit(new.realtimekit);
                    }
                    // A client that was granted more before has it yet.
                    greatest = greatest.max(granted(&new));
                    go_first(greatest);
                }
                config = new;
            });
            let later = config.later_than(&started);
            let told = told_how(how, &config, later);
            for reply in waiting {
                answer(&reply, told.clone().map_err(Fault::Invalid));
            }
        }
        service.attend(sensor, controller)
    });
    watchdog::stopping();
    controller.finish(sensor.now());
    service.finish(&mut controller, sensor.now());
    let is_cut_off = service.is_cut_off();
    // The order matters: what a reservation lay above is put back after it, and both before a bus
    // that may not answer is waited for.
    drop(controller);
    service.end();
    if let Some(served) = served {
        served.end();
    }
    if options.hand_over {
        tracing::info!(
            "ended: clients of RealtimeKit keep their priorities, all other threads have their former scheduling again"
        );
    } else {
        tracing::info!("ended: every thread has its former scheduling again");
    }
    outcome.context("the tracer failed")?;
    if is_cut_off {
        bail!("the system bus is gone: start the service again when it is back (systemd does)");
    }
    Ok(())
}

/// Gives up for good the rights by which the tracer was loaded, where it goes on without them
/// (Linux 6.0): with these, code in the service reads all memory. Before there are other threads.
fn load_no_more(sensor: &mut BpfSensor) -> rustix::io::Result<()> {
    let loading = CapabilitySet::BPF | CapabilitySet::PERFMON;
    let given = capabilities(None)?;
    let mut rest = given;
    rest.effective -= loading;
    set_capabilities(None, rest)?;
    if let Err(error) = sensor.programs() {
        tracing::info!("keeps the rights to load BPF programs: {error}");
        return set_capabilities(None, given);
    }
    rest.permitted -= loading;
    set_capabilities(None, rest)
}

/// The greatest priority that clients of RealtimeKit may have; 0 if they have none.
fn granted(config: &Config) -> u32 {
    config.realtimekit.map_or(0, |limits| limits.priority)
}

/// Ahead of all that have been `granted` a priority: threads that take whole CPUs would keep the
/// loop from answering, and systemd would end it.
fn go_first(granted: u32) {
    if let Err(error) = own::go_first(own::LOWEST.max(granted + 1)) {
        tracing::warn!(
            "cannot raise its own priority ({error}): it may act late on a busy machine"
        );
    }
}

/// The loop's settings that the configuration describes.
fn settings(config: &Config, registry: &SharedRegistry) -> Settings {
    let [registry, parties] = [registry, registry].map(Rc::clone);
    Settings {
        estimation: config.budgets.estimation(false),
        allocation: config.budgets.allocation(),
        means: AllowedMeans {
            always: config.always,
            // Where an interrupt cannot be told from a thread that wakes another one, a batch
            // program seems to have a clock.
            raises: bpf::tells_wakers(),
            ..AllowedMeans::default()
        },
        pipelines: config.pipelines.then(|| PipelineSettings {
            outsiders: vec![std::process::id()],
        }),
        parties: Box::new(move |task| parties.borrow().party(task)),
        treat: Box::new(move |task| registry.borrow().treatment(task)),
        ..Settings::default()
    }
}

/// How reading the configuration anew went, in the log and for those who asked for it.
fn told_how(
    how: Result<(), ConfigError>,
    config: &Config,
    later: Vec<&'static str>,
) -> Result<Vec<&'static str>, String> {
    match how {
        Ok(()) => {
            tracing::info!(
                "configuration read again: {} rules",
                config.rules.list.len()
            );
            if !later.is_empty() {
                tracing::warn!(
                    "{} stays as it was until the service is restarted (systemctl restart onbeat)",
                    later.join(", ")
                );
            }
            Ok(later)
        }
        Err(error) => {
            tracing::error!("{error}; the former configuration stays in force");
            Err(error.to_string())
        }
    }
}

/// Undoes the changes that an earlier service has left. Priorities of RealtimeKit's clients are
/// taken over instead, if these are served.
fn put_back_the_past(
    options: &ServiceOptions,
    priorities: Option<&mut Priorities>,
) -> anyhow::Result<()> {
    let report = match priorities {
        Some(priorities) => priorities.adopt(&options.state),
        None => restore::restore(&options.state, false),
    };
    let report = report.with_context(|| format!("cannot read {}", options.state.display()))?;
    for (task, outcome) in &report.tasks {
        tracing::warn!(
            tid = task.tid,
            "left by an onbeat that was killed: thread {task}: {outcome}"
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::process::Command;

    use super::*;

    /// In a process of its own, which is this test again.
    #[test]
    fn a_panic_of_another_thread_ends_the_service() {
        const AGAIN: &str = "ONBEAT_TEST_PANICS";
        if std::env::var_os(AGAIN).is_some() {
            end_on_a_panic_elsewhere();
            let panics = std::thread::spawn(|| panic!("as asked"));
            assert!(panics.join().is_err());
            return;
        }
        let mut again = Command::new(std::env::current_exe().unwrap());
        again.args([
            "--exact",
            "run::tests::a_panic_of_another_thread_ends_the_service",
        ]);
        let output = again.env(AGAIN, "1").output().unwrap();
        assert_eq!(output.status.signal(), Some(libc::SIGABRT), "{output:?}");
    }
}
