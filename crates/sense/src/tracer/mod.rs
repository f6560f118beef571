//! The tracers side by side: which there are, which works here, and one type for whichever it is.
//!
//! All are a [`Sensor`], so the loop does not know which one it hears. They differ in what they
//! need and in what they can tell ([`Abilities`]); `docs/tracers.md` compares them.

mod error;
mod kind;
mod limitation;

use std::path::Path;

use onbeat_model::{Event, Feature, Flow, Follow, Instant, Sensor, Span, TaskId};

pub use error::Error;
pub use kind::{Abilities, Kind, Wants};
pub use limitation::Limitation;

use crate::bpf::{self, BpfSensor, Parser};
use crate::perf::PerfSensor;
use crate::preload::PreloadSensor;
use crate::preparation::Preparation;
use crate::ptrace::PtraceSensor;
use crate::tracefs::TracefsSensor;

/// Whichever tracer it is.
#[derive(Debug)]
pub enum Tracer {
    /// [`Kind::Bpf`] and [`Kind::BpfSyscalls`].
    Bpf(Box<BpfSensor>),
    /// [`Kind::Tracefs`].
    Tracefs(Box<TracefsSensor>),
    /// [`Kind::Perf`].
    Perf(Box<PerfSensor>),
    /// [`Kind::Ptrace`].
    Ptrace(PtraceSensor),
    /// [`Kind::Preload`].
    Preload(PreloadSensor),
}

/// Does the same with whichever tracer it is.
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

/// A tracer that was started.
#[derive(Debug)]
pub struct Started {
    /// It.
    pub tracer: Tracer,
    /// The next better one that could do it, and could work for this user, and why it does not.
    pub instead_of: Option<(Kind, Error)>,
}

/// Starts the first of `kinds` that does what is wanted and works here. Nothing is tracked yet.
/// `parser` reads programs' files where the tracer does.
///
/// # Errors
/// If none of them can do what is wanted and works here.
pub fn start(kinds: &[Kind], wants: &Wants, parser: &Parser) -> Result<Started, Error> {
    let mut reasons = Vec::new();
    for &kind in kinds {
        match kind
            .suits(wants)
            .and_then(|()| Tracer::new(kind, wants, parser))
        {
            Ok(tracer) => {
                // SAFETY: takes nothing and always succeeds.
                let is_root = unsafe { libc::geteuid() } == 0;
                let instead_of = reasons.into_iter().rfind(|(kind, why): &(Kind, _)| {
                    let could = is_root || kind.abilities().unprivileged;
                    could && !matches!(why, Error::Lacks { .. })
                });
                return Ok(Started { tracer, instead_of });
            }
            Err(error) if kinds.len() == 1 => return Err(error),
            Err(error) => reasons.push((kind, error)),
        }
    }
    Err(Error::None { reasons })
}

/// Whether each tracer works here, and why not.
#[must_use]
pub fn probe() -> Vec<Feature> {
    Kind::ALL.map(Kind::probe).into()
}

impl Tracer {
    fn new(kind: Kind, wants: &Wants, parser: &Parser) -> Result<Self, Error> {
        let bpf = |options| -> Result<Self, Error> {
            let sensor = BpfSensor::with_parser(options, parser.clone())?;
            Ok(Self::Bpf(Box::new(sensor)))
        };
        Ok(match kind {
            Kind::Bpf => bpf(bpf::Options {
                raw_wakeups: wants.wakeups,
                partners: wants.partners,
                ..bpf::Options::default()
            })?,
            Kind::BpfSyscalls => bpf(bpf::Options {
                calls: wants.calls().iter().map(|call| call.number()).collect(),
                ..bpf::Options::default()
            })?,
            Kind::Tracefs => Self::Tracefs(Box::new(TracefsSensor::new(wants.wakeups)?)),
            Kind::Perf => Self::Perf(Box::new(PerfSensor::new()?)),
            Kind::Ptrace => Self::Ptrace(PtraceSensor::new(wants.calls())?),
            Kind::Preload => Self::Preload(PreloadSensor::new()?),
        })
    }

    /// Which it is.
    #[must_use]
    pub fn kind(&self) -> Kind {
        match self {
            Self::Bpf(sensor) if sensor.tells_calls() => Kind::BpfSyscalls,
            Self::Bpf(_) => Kind::Bpf,
            Self::Tracefs(_) => Kind::Tracefs,
            Self::Perf(_) => Kind::Perf,
            Self::Ptrace(_) => Kind::Ptrace,
            Self::Preload(_) => Kind::Preload,
        }
    }

    /// The steps before a program that onbeat starts is heard.
    #[must_use]
    pub fn preparation(&self) -> Preparation {
        match self {
            Self::Ptrace(sensor) => sensor.preparation(),
            Self::Preload(sensor) => sensor.preparation(),
            Self::Bpf(_) | Self::Tracefs(_) | Self::Perf(_) => Preparation::default(),
        }
    }

    /// The process `pid`, tracked already, is about to execute `program`.
    pub fn expect(&mut self, pid: u32, program: &Path) {
        if let Self::Bpf(sensor) = self {
            sensor.expect(pid, program);
        }
    }

    /// Why not all that programs say of their work was heard, if so.
    #[must_use]
    pub fn deaf(&self) -> Option<&bpf::Error> {
        match self {
            Self::Bpf(sensor) => sensor.deaf(),
            Self::Tracefs(_) | Self::Perf(_) | Self::Ptrace(_) | Self::Preload(_) => None,
        }
    }
}

impl Sensor for Tracer {
    type Error = Error;

    fn track(&mut self, tid: u32, follow: Follow) -> Result<(), Error> {
        each!(self, sensor => Ok(sensor.track(tid, follow)?))
    }

    fn untrack(&mut self, tasks: &[TaskId]) -> Result<(), Error> {
        each!(self, sensor => Ok(sensor.untrack(tasks)?))
    }

    fn poll(&mut self, timeout: Span, events: &mut Vec<Event>) -> Result<Flow, Error> {
        each!(self, sensor => Ok(sensor.poll(timeout, events)?))
    }

    fn let_wait(&mut self, may_wait: bool) {
        each!(self, sensor => sensor.let_wait(may_wait));
    }

    fn now(&self) -> Instant {
        each!(self, sensor => sensor.now())
    }

    fn executed(&mut self, task: TaskId) -> Option<Span> {
        each!(self, sensor => sensor.executed(task))
    }

    fn idle(&mut self) -> Option<Vec<Span>> {
        each!(self, sensor => sensor.idle())
    }
}
