//! The papers' feedback controllers as they are written, at the same seams as onbeat's loop: LFS,
//! LFS++ and AQuoSA's adaptive reservations.
//!
//! None of what onbeat adds is in force: no budget before the first sample, no raise of an
//! exhausted one, no hysteresis, no tracking of the period between two analyses.

mod adaptive;
mod lfs;
mod lfspp;

use onbeat_decide::supervisor::{Limits, Request, arbitrate};
use onbeat_model::{
    Actuator, Bandwidth, Burst, Event, Flow, Instant, Mark, Reservation, Sensor, Span, TaskId,
};

pub use adaptive::Adaptive;
pub use lfs::Lfs;
pub use lfspp::LfsPlusPlus;

#[derive(Clone, Debug, PartialEq)]
pub enum ReferenceController {
    /// The first one, which knows whether the last budget was enough (LFS++, section 2).
    Lfs(Lfs),
    /// Period analyser and bandwidth controller (LFS++, section 5).
    LfsPlusPlus(LfsPlusPlus),
    /// The program says where its jobs are (LFS++, section 7.3).
    Adaptive(Adaptive),
}

impl ReferenceController {
    /// The method of this name with the papers' parameters; none if there is no such method.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "lfs" => Some(Self::Lfs(Lfs::default())),
            "lfs++" => Some(Self::LfsPlusPlus(LfsPlusPlus::default())),
            "adaptive" => Some(Self::Adaptive(Adaptive::default())),
            _ => None,
        }
    }

    pub const NAMES: [&'static str; 3] = ["lfs", "lfs++", "adaptive"];

    fn controller(&self, task: TaskId, now: Instant) -> Box<dyn Controls> {
        match self {
            Self::Lfs(lfs) => Box::new(lfs::LfsControl::new(*lfs, task, now)),
            Self::LfsPlusPlus(settings) => Box::new(lfspp::LfsPlusPlusControl::new(*settings, now)),
            Self::Adaptive(adaptive) => Box::new(adaptive::AdaptiveControl::new(*adaptive)),
        }
    }
}

/// The inputs of one task's controller, and its request.
trait Controls {
    fn burst(&mut self, _burst: &Burst) {}

    fn exhausted(&mut self, _at: Instant, _held: Reservation) {}

    fn marked(&mut self, _mark: &Mark) {}

    fn due(&self) -> Instant {
        Instant::from_ns(u64::MAX)
    }

    /// The longest delay at which it may handle an event.
    fn patience(&self) -> Span {
        IDLE
    }

    /// It is `now`, and the task has executed so much.
    fn look(&mut self, _now: Instant, _executed: Span) {}

    /// The reservation that it asks the supervisor for.
    fn wanted(&self) -> Option<Reservation>;
}

struct Controlled {
    task: TaskId,
    control: Box<dyn Controls>,
    held: Option<Reservation>,
}

/// How long a poll waits where nothing is due.
const IDLE: Span = Span::from_secs(1);

/// Keeps each task that `sensor` tracks under `method`, until there is nothing more to hear; gives
/// the number of changes of reservations. `progress` is called with the time after each turn.
///
/// Where requests do not all fit under eq. 1, onbeat's supervisor curbs them, all with the same
/// weight: the paper leaves the rule open (section 4.2). The reservation stays.
pub fn drive<S: Sensor, A: Actuator>(
    method: &ReferenceController,
    sensor: &mut S,
    actuator: &mut A,
    mut progress: impl FnMut(Instant),
) -> Result<u64, S::Error> {
    let mut tasks: Vec<Controlled> = Vec::new();
    let mut events = Vec::new();
    let mut changes = 0;
    // A task that is tracked already has its event at once.
    let mut idle = Span::ZERO;
    loop {
        let now = sensor.now();
        let wait = |task: &Controlled| task.control.due().since(now).min(task.control.patience());
        let wait = tasks.iter().map(wait).min().unwrap_or(idle);
        idle = IDLE;
        let flow = sensor.poll(wait, &mut events)?;
        let now = sensor.now();
        let is_due = tasks.iter().any(|task| task.control.due() <= now);
        if events.is_empty() && !is_due && flow == Flow::Open {
            continue;
        }
        for event in events.drain(..) {
            handle(method, &mut tasks, &event, now);
        }
        for task in &mut tasks {
            if let Some(executed) = sensor.executed(task.task) {
                task.control.look(now, executed);
            }
        }
        changes += put_in_force(&mut tasks, actuator);
        progress(now);
        if flow == Flow::Ended {
            return Ok(changes);
        }
    }
}

fn handle(method: &ReferenceController, tasks: &mut Vec<Controlled>, event: &Event, now: Instant) {
    let of = |tasks: &mut Vec<Controlled>, id: TaskId| tasks.iter().position(|t| t.task == id);
    match event {
        Event::Tracked { task, .. } => tasks.push(Controlled {
            task: task.id,
            control: method.controller(task.id, now),
            held: None,
        }),
        Event::Burst(burst) => {
            if let Some(found) = of(tasks, burst.task) {
                tasks[found].control.burst(burst);
            }
        }
        Event::Marked(mark) => {
            if let Some(found) = of(tasks, mark.task) {
                tasks[found].control.marked(mark);
            }
        }
        Event::Exhausted { at, task } => {
            if let Some(found) = of(tasks, *task)
                && let Some(held) = tasks[found].held
            {
                tasks[found].control.exhausted(*at, held);
            }
        }
        Event::Exited { task, .. } => tasks.retain(|controlled| controlled.task != *task),
        _ => {}
    }
}

/// Curbs what is wanted to what fits, and puts it in force, what shrinks first.
fn put_in_force<A: Actuator>(tasks: &mut [Controlled], actuator: &mut A) -> u64 {
    let capacity = actuator.capacity();
    let limits = Limits {
        total: capacity.admissible,
        per_task: Bandwidth::from_cpus(1.0),
        shortest_runtime: capacity.shortest_runtime,
    };
    let wanted = tasks.iter().enumerate();
    let wanted =
        wanted.filter_map(|(place, task)| Some((place, task.task, task.control.wanted()?)));
    let (places, requests): (Vec<usize>, Vec<Request>) = wanted
        .map(|(place, task, wanted)| {
            let request = Request {
                task,
                wanted,
                least: Bandwidth::ZERO,
                weight: 1.0,
            };
            (place, request)
        })
        .unzip();
    let grants = arbitrate(&requests, &limits).grants;
    let mut granted: Vec<(usize, Reservation)> = places
        .into_iter()
        .zip(grants)
        .filter_map(|(place, grant)| Some((place, grant.reservation?)))
        .collect();
    granted.sort_by_key(|&(place, new)| {
        let held = tasks[place].held.map(|held| held.bandwidth());
        held.is_none_or(|held| new.bandwidth() > held)
    });
    let mut changes = 0;
    for (place, new) in granted {
        let task = &mut tasks[place];
        if task.held != Some(new) && actuator.reserve(task.task, new).is_ok() {
            task.held = Some(new);
            changes += 1;
        }
    }
    changes
}
