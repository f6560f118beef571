//! The tracers side by side: which there are, which works here, and one type for whichever it is.
//!
//! All are a [`Sensor`], so the loop does not know which one it hears. They differ in what they
//! need and in what they can tell; `docs/tracers.md` compares them.

mod error;
mod kind;
mod limitation;

use onbeat_model::{Event, Feature, Flow, Follow, Instant, Sensor, Span, TaskId};
use rustix::process::geteuid;

pub use error::TracerError;
pub use kind::{TracerKind, Wants};
pub use limitation::Limitation;

use crate::bpf::{self, BpfSensor, Meter};
use crate::perf::PerfSensor;
use crate::preload::PreloadSensor;
use crate::preparation::Preparation;
use crate::ptrace::PtraceSensor;
use crate::tracefs::TracefsSensor;

/// Whichever tracer it is.
#[derive(Debug)]
pub enum Tracer {
    /// [`TracerKind::Bpf`] and [`TracerKind::BpfSyscalls`].
    Bpf(Box<BpfSensor>),
    Tracefs(Box<TracefsSensor>),
    Perf(Box<PerfSensor>),
    Ptrace(PtraceSensor),
    Preload(PreloadSensor),
}

macro_rules! each {
    ($tracer:expr, $sensor:ident => $what:expr) => {
        match $tracer {
            Tracer::Bpf($sensor) => $what,
            Tracer::Tracefs($sensor) => $what,
            Tracer::Perf($sensor) => $what,
            Tracer::Ptrace($sensor) => $what,
            Tracer::Preload($sensor) => $what,
        }
    };
}

#[derive(Debug)]
pub struct StartedTracer {
    pub tracer: Tracer,
    /// The next better one that could do it, and could work for this user, and why it does not.
    pub instead_of: Option<(TracerKind, TracerError)>,
}

/// Starts the first of `kinds` that does what is wanted and works here. Nothing is tracked yet.
pub fn start(kinds: &[TracerKind], wants: &Wants) -> Result<StartedTracer, TracerError> {
    let mut reasons = Vec::new();
    for &kind in kinds {
        match kind.suits(wants).and_then(|()| Tracer::new(kind, wants)) {
            Ok(tracer) => {
                let is_root = geteuid().is_root();
                let instead_of = reasons.into_iter().rfind(|(kind, why): &(TracerKind, _)| {
                    let could = is_root || kind.is_for_users();
                    could && !matches!(why, TracerError::Lacks { .. })
                });
                return Ok(StartedTracer { tracer, instead_of });
            }
            Err(error) if kinds.len() == 1 => return Err(error),
            Err(error) => reasons.push((kind, error)),
        }
    }
    Err(TracerError::None { reasons })
}

/// Whether each tracer works here, and why not.
pub fn probe() -> Vec<Feature> {
    TracerKind::ALL.map(TracerKind::probe).into()
}

impl Tracer {
    fn new(kind: TracerKind, wants: &Wants) -> Result<Self, TracerError> {
        let bpf = |options| -> Result<Self, TracerError> {
            Ok(Self::Bpf(Box::new(BpfSensor::new(options)?)))
        };
        Ok(match kind {
            TracerKind::Bpf => bpf(bpf::BpfOptions {
                raw_wakeups: wants.wakeups,
                partners: wants.partners,
                ..bpf::BpfOptions::default()
            })?,
            TracerKind::BpfSyscalls => bpf(bpf::BpfOptions {
                calls: wants.calls().iter().map(|call| call.number()).collect(),
                ..bpf::BpfOptions::default()
            })?,
            TracerKind::Tracefs => Self::Tracefs(Box::new(TracefsSensor::new(wants.wakeups)?)),
            TracerKind::Perf => Self::Perf(Box::new(PerfSensor::new()?)),
            TracerKind::Ptrace => Self::Ptrace(PtraceSensor::new(wants.calls())?),
            TracerKind::Preload => Self::Preload(PreloadSensor::new()?),
        })
    }

    pub fn kind(&self) -> TracerKind {
        match self {
            Self::Bpf(sensor) if sensor.tells_calls() => TracerKind::BpfSyscalls,
            Self::Bpf(_) => TracerKind::Bpf,
            Self::Tracefs(_) => TracerKind::Tracefs,
            Self::Perf(_) => TracerKind::Perf,
            Self::Ptrace(_) => TracerKind::Ptrace,
            Self::Preload(_) => TracerKind::Preload,
        }
    }

    pub fn preparation(&self) -> Preparation {
        match self {
            Self::Ptrace(sensor) => sensor.preparation(),
            Self::Preload(sensor) => sensor.preparation(),
            Self::Bpf(_) | Self::Tracefs(_) | Self::Perf(_) => Preparation::default(),
        }
    }

    pub fn meter(&self) -> Option<Meter> {
        match self {
            Self::Bpf(sensor) => Some(sensor.meter()),
            Self::Tracefs(_) | Self::Perf(_) | Self::Ptrace(_) | Self::Preload(_) => None,
        }
    }
}

impl Sensor for Tracer {
    type Error = TracerError;

    fn track(&mut self, tid: u32, follow: Follow) -> Result<(), TracerError> {
        each!(self, sensor => Ok(sensor.track(tid, follow)?))
    }

    fn untrack(&mut self, tasks: &[TaskId]) -> Result<(), TracerError> {
        each!(self, sensor => Ok(sensor.untrack(tasks)?))
    }

    fn poll(&mut self, timeout: Span, events: &mut Vec<Event>) -> Result<Flow, TracerError> {
        each!(self, sensor => Ok(sensor.poll(timeout, events)?))
    }

    fn now(&self) -> Instant {
        each!(self, sensor => sensor.now())
    }

    fn executed(&mut self, task: TaskId) -> Option<Span> {
        each!(self, sensor => sensor.executed(task))
    }

    fn assign(&mut self, task: TaskId, application: u32) {
        each!(self, sensor => sensor.assign(task, application));
    }

    fn spent(&mut self, application: u32) -> Option<Span> {
        each!(self, sensor => sensor.spent(application))
    }

    fn others_real_time(&mut self) -> Option<Instant> {
        each!(self, sensor => sensor.others_real_time())
    }

    fn idle(&mut self) -> Option<Vec<Span>> {
        each!(self, sensor => sensor.idle())
    }
}
