//! Plans for the scheduler `grace`: for each thread a budget of work in every period, and the
//! points at which its jobs speed up. The caller decides about them; what the scheduler tells of
//! jobs is passed on.

use libbpf_rs::{Link, MapCore, MapFlags};
use onbeat_model::{Span, Speed};

use crate::opened::is_section;
use crate::{Error, Running};

/// `GRACE_POINTS` of `schedulers/grace/policy.h`.
const POINTS: usize = 16;
/// `GRACE_PLANS` of `schedulers/grace/plan.h`: the most threads that can have a plan.
pub const PLANS: u32 = 64;
/// `GRACE_MESSAGES` there: the most messages between two looks.
const MOST_MESSAGES: usize = 40_960;
/// The kinds of messages of `schedulers/grace/plan.h`.
const STARTS: u32 = 1;
const FINISHES: u32 = 2;
const LEAVES: u32 = 3;
/// The kernel's unit of speed: the highest.
const FULL: f64 = 1024.0;

/// The budget of a thread's jobs, and their speeds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadPlan {
    /// The period after which the budget is given anew.
    pub period: Span,
    /// Work in every period, in time at the highest speed.
    pub budget: Span,
    /// A job that has done so much work runs at that speed: the first at zero, and both grow; and
    /// the highest speed there is. None: the speed is left alone.
    pub speeds: Option<(Vec<(Span, Speed)>, Speed)>,
}

/// The scheduler's messages about a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThreadMessage {
    /// It says that it is soft real-time.
    Starts {
        tid: u32,
        /// How often it has a job, as it says.
        period: Span,
        /// How many of a thousand are to be in time, as it says.
        permille: u64,
    },
    /// Jobs of it have ended.
    Finishes {
        tid: u32,
        /// The work of all of them, in time at the highest speed.
        work: Span,
        /// How many: at least one.
        jobs: u64,
    },
    /// It is soft real-time no longer, or is no more.
    Leaves { tid: u32 },
}

#[derive(Debug, thiserror::Error)]
pub enum NotPlanned {
    /// The rules have room for no more.
    #[error("a schedule of {0} speeds: there is room for {POINTS}")]
    TooManyPoints(usize),
    #[error("there are {PLANS} plans already, and there can be no more")]
    NoSlot,
    #[error("it has ended, or never was")]
    Gone,
    /// Something that does not fail on a healthy kernel did.
    #[error(transparent)]
    System(#[from] Error),
}

#[repr(C)]
#[derive(Default)]
struct GraceCall {
    slot: u32,
    tid: u32,
    period_ns: u64,
    budget: u64,
    points: u64,
    point: [[u64; 2]; POINTS],
}

impl GraceCall {
    fn new(number: u32, tid: u32, plan: &ThreadPlan) -> Result<Self, NotPlanned> {
        if number >= PLANS {
            return Err(NotPlanned::NoSlot);
        }
        let mut call = Self {
            slot: number,
            tid,
            period_ns: plan.period.as_ns(),
            budget: plan.budget.as_ns(),
            ..Self::default()
        };
        if let Some((points, highest)) = &plan.speeds {
            if points.len() > POINTS {
                return Err(NotPlanned::TooManyPoints(points.len()));
            }
            call.points = points.len() as u64;
            for (own, &(after, speed)) in call.point.iter_mut().zip(points) {
                // Rounded up, so that a budget is never slower than planned.
                let speed = (speed.ratio(*highest) * FULL).ceil() as u64;
                *own = [after.as_ns(), speed];
            }
        }
        Ok(call)
    }

    fn run(mut self, running: &mut Running, name: &'static str) -> Result<(), Error> {
        // SAFETY: a plain C structure of whole numbers without padding.
        unsafe { running.call(name, &mut self) }.map(drop)
    }
}

/// Has work counted at the speeds that CPUs really have, as their drivers tell, for as long as it
/// is held. Without it, work counts at the speeds that the scheduler asks for.
#[derive(Debug)]
pub struct WorkPace(#[expect(dead_code, reason = "held for what it does")] Link);

/// Begins that; `highest` is the speed at which plans have work done in its time.
pub fn keep_pace(running: &mut Running, highest: Speed) -> Result<WorkPace, Error> {
    let object = running.object();
    let malformed = |what| Error::Malformed {
        name: "grace",
        what,
    };
    object
        .maps()
        .find(|map| is_section(map.name(), ".data.highest"))
        .ok_or_else(|| malformed("highest_khz"))?
        .update(
            &0_u32.to_ne_bytes(),
            &highest.as_khz().to_ne_bytes(),
            MapFlags::ANY,
        )
        .map_err(Error::kernel("tell the scheduler the highest speed"))?;
    let link = object
        .progs_mut()
        .find(|program| program.name() == "frequency_changes")
        .ok_or_else(|| malformed("frequency_changes"))?
        .attach()
        .map_err(Error::kernel("hear of the CPUs' frequencies"))?;
    Ok(WorkPace(link))
}

/// Gives the thread `tid` a plan from its next job on, as the `number`th thread that has one.
pub fn set_plan(
    running: &mut Running,
    number: u32,
    tid: u32,
    plan: &ThreadPlan,
) -> Result<(), NotPlanned> {
    let call = GraceCall::new(number, tid, plan)?;
    call.run(running, "set_plan")?;
    if has_plan(running, tid) {
        Ok(())
    } else {
        Err(NotPlanned::Gone)
    }
}

/// Takes the plan of the thread `tid`, the `number`th, away; another thread may be that one from
/// then on.
pub fn forget_plan(running: &mut Running, number: u32, tid: u32) -> Result<(), Error> {
    let call = GraceCall {
        slot: number,
        tid,
        ..GraceCall::default()
    };
    call.run(running, "forget_plan")
}

/// Whether the thread `tid` has a plan: the scheduler takes it from one that has ended.
pub fn has_plan(running: &mut Running, tid: u32) -> bool {
    let object = running.object();
    let threads = object.maps().find(|map| map.name() == "threads");
    let found = threads.map(|map| map.lookup(&tid.to_ne_bytes(), MapFlags::ANY));
    !matches!(found, Some(Ok(None)))
}

pub fn messages(running: &mut Running) -> Result<Vec<ThreadMessage>, Error> {
    let name = "messages";
    let object = running.object();
    let map = object
        .maps()
        .find(|map| map.name() == name)
        .ok_or(Error::Malformed {
            name: "grace",
            what: name,
        })?;
    let mut all = Vec::new();
    // A program that sends without end does not keep us here.
    for _ in 0..MOST_MESSAGES {
        let bytes = map.lookup_and_delete(&[]);
        let Some(bytes) = bytes.map_err(Error::kernel("hear what the scheduler tells"))? else {
            break;
        };
        all.extend(read(&bytes));
    }
    Ok(all)
}

/// A `struct grace_message`.
fn read(bytes: &[u8]) -> Option<ThreadMessage> {
    let word = |at: usize| Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    let long = |at: usize| Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
    let (what, tid) = (word(0)?, word(4)?);
    let (amount, number) = (Span::from_ns(long(8)?), long(16)?);
    match what {
        STARTS => Some(ThreadMessage::Starts {
            tid,
            period: amount,
            permille: number,
        }),
        FINISHES => Some(ThreadMessage::Finishes {
            tid,
            work: amount,
            jobs: number.max(1),
        }),
        LEAVES => Some(ThreadMessage::Leaves { tid }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_is_read_as_the_scheduler_wrote_it() {
        let told = |what: u32| {
            let words = [what, 7].map(u32::to_ne_bytes);
            let longs = [16_000_000_u64, 3].map(u64::to_ne_bytes);
            read(&[words.as_flattened(), longs.as_flattened()].concat())
        };
        let period = Span::from_ms(16);
        let starts = ThreadMessage::Starts {
            tid: 7,
            period,
            permille: 3,
        };
        let finishes = ThreadMessage::Finishes {
            tid: 7,
            work: period,
            jobs: 3,
        };
        assert_eq!(told(STARTS), Some(starts));
        assert_eq!(told(FINISHES), Some(finishes));
        assert_eq!(told(LEAVES), Some(ThreadMessage::Leaves { tid: 7 }));
        assert_eq!(told(0), None);
        assert_eq!(read(&[1; 23]), None);
    }
}
