//! The service from its start to its end.

use std::cell::RefCell;
use std::path::PathBuf;
use std::rc::Rc;

use anyhow::Context;
use onbeat_act::restore::{self, StateFile};
use onbeat_act::{DeadlineActuator, Priorities, own};
use onbeat_control::{Controller, Next, Settings, drive};
use onbeat_model::{Bandwidth, Sensor, Span};
use onbeat_sense::bpf::{self, BpfSensor};

use crate::book::Book;
use crate::bounded::Bounded;
use crate::bus;
use crate::gate::Gate;
use crate::keeper::{Keeper, Teller, Trial};
use crate::logs;
use crate::quota::{Ledger, Quotas};
use crate::request::Door;

/// How many changes wait to be told on the bus at most.
const MOST_UNTOLD: usize = 1024;

/// How the service is started.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where it is noted what has to be put back.
    pub state: PathBuf,
}

/// A signal from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// To end.
    End,
    /// To read the configuration anew.
    Reload,
}

/// Serves until told to end; then everybody gets back what he had. `told` is asked each turn for a signal
/// that came.
///
/// # Errors
/// If something that it needs is not there: the bus, BPF, a place for the state file.
pub fn run(options: &Options, mut told: impl FnMut() -> Option<Told>) -> anyhow::Result<()> {
    logs::begin();
    put_back_the_past(options)?;
    let state_file = || {
        StateFile::create(&options.state)
            .with_context(|| format!("cannot write to {}", options.state.display()))
    };
    let actuator = DeadlineActuator::new(state_file()?, onbeat_act::Options::default());
    // Made after the other's state file, for it is to be undone after it.
    let priorities = Priorities::new(state_file()?);
    let book = Rc::new(RefCell::new(Book::new(Ledger::new(Quotas::default()))));
    let sensor = BpfSensor::new(bpf::Options {
        endless: true,
        ..bpf::Options::default()
    })
    .context("cannot trace")?;
    let (door, requests) = Door::new(sensor.waker());
    let (changes, untold) = async_channel::bounded(MOST_UNTOLD);
    let teller = Teller::new(changes, sensor.now());
    let mut sensor = Gate::new(sensor, Rc::clone(&book));
    let bounded = Bounded::new(actuator, Rc::clone(&book));
    let mut controller = Controller::new(Settings::default(), bounded);
    let trial = Trial {
        share: Bandwidth::from_cpus(0.5),
        period: Span::from_ms(10),
    };
    let mut keeper = Keeper::new(book, priorities, requests, teller, trial);
    let served = bus::serve(&door, untold, Some(bus::Limits::default()))?;
    if let Err(why) = &served.realtimekit {
        tracing::warn!("clients of RealtimeKit are not served: {why}");
    }
    if let Err(error) = own::go_first() {
        tracing::warn!("cannot run ahead of other programs ({error}): may answer late");
    }
    tracing::info!("serving {}", bus::NAME);
    let outcome = drive(&mut sensor, &mut controller, |sensor, controller| {
        while let Some(told) = told() {
            match told {
                Told::End => return Next::Stop,
                Told::Reload => {}
            }
        }
        keeper.attend(sensor, controller)
    });
    served.end();
    controller.finish(sensor.now());
    keeper.finish(&mut controller);
    // The order matters: what a reservation lay above is put back after it.
    drop(controller);
    drop(keeper);
    tracing::info!("ended: everybody has back what he had");
    outcome.context("tracing broke off")
}

/// What a service that was killed has left changed.
fn put_back_the_past(options: &Options) -> anyhow::Result<()> {
    let report = restore::restore(&options.state, false)
        .with_context(|| format!("cannot read {}", options.state.display()))?;
    for (task, outcome) in &report.tasks {
        tracing::warn!(
            tid = task.tid,
            "left by an onbeat that was killed: thread {task}: {outcome}"
        );
    }
    Ok(())
}
