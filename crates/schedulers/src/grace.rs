//! Plans for the scheduler `grace`: for each thread a budget of work in every period, and the points at which its jobs
//! speed up. What they are is not decided here.

use libbpf_rs::ProgramInput;
use onbeat_model::{Span, Speed};

use crate::{Error, Running};

/// `GRACE_POINTS` of `schedulers/grace/policy.h`.
const POINTS: usize = 16;
/// `GRACE_PLANS` of `schedulers/grace/plan.h`.
const PLANS: u32 = 64;
/// The kernel's unit of speed: the highest.
const FULL: f64 = 1024.0;

/// What a thread's jobs may use, and how fast they run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The budget is given anew so often.
    pub period: Span,
    /// Work in every period, in time at the highest speed.
    pub budget: Span,
    /// A job that has done so much work runs at that speed; the first at zero, and both grow.
    pub points: Vec<(Span, Speed)>,
    /// The highest speed.
    pub highest: Speed,
}

/// Why a thread has no plan.
#[derive(Debug, thiserror::Error)]
pub enum NotPlanned {
    /// The rules have room for no more.
    #[error("a schedule of {0} speeds: there is room for {POINTS}")]
    TooManyPoints(usize),
    /// The scheduler has room for no more.
    #[error("there are {PLANS} plans already, and there can be no more")]
    NoSlot,
    /// Something that does not fail on a healthy kernel did.
    #[error(transparent)]
    System(#[from] Error),
}

/// `struct grace_call` of `schedulers/grace/plan.h`.
#[repr(C)]
struct Call {
    slot: u32,
    tid: u32,
    period_ns: u64,
    budget: u64,
    points: u64,
    point: [[u64; 2]; POINTS],
}

/// Gives the thread `tid` a plan from its next job on, as the `number`th thread that has one.
///
/// # Errors
/// See [`NotPlanned`].
pub fn set_plan(
    running: &mut Running,
    number: u32,
    tid: u32,
    plan: &Plan,
) -> Result<(), NotPlanned> {
    if number >= PLANS {
        return Err(NotPlanned::NoSlot);
    }
    if plan.points.len() > POINTS {
        return Err(NotPlanned::TooManyPoints(plan.points.len()));
    }
    let mut call = Call {
        slot: number,
        tid,
        period_ns: plan.period.as_ns(),
        budget: plan.budget.as_ns(),
        points: plan.points.len() as u64,
        point: [[0; 2]; POINTS],
    };
    for (own, &(after, speed)) in call.point.iter_mut().zip(&plan.points) {
        // Rounded up, so that a budget is never slower than planned.
        let speed = (speed.ratio(plan.highest) * FULL).ceil() as u64;
        *own = [after.as_ns(), speed];
    }
    let name = "set_plan";
    let mut programs = running.object().progs_mut();
    let program = programs
        .find(|program| program.name() == name)
        .ok_or(Error::Malformed {
            name: "grace",
            what: name,
        })?;
    // SAFETY: `call` is a plain C structure of whole numbers without padding, exclusively borrowed; any bytes that the
    // kernel writes to it are valid numbers.
    let bytes =
        unsafe { std::slice::from_raw_parts_mut((&raw mut call).cast::<u8>(), size_of::<Call>()) };
    program
        .test_run(ProgramInput {
            context_in: Some(bytes),
            ..ProgramInput::default()
        })
        .map_err(Error::kernel("talk to the scheduler"))?;
    Ok(())
}
