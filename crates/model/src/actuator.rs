//! The seam towards the scheduler: what the loop may do to a task, and how it can be refused.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{Bandwidth, Instant, Ladder, Reservation, Span, Speed, TaskId};

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Capacity {
    pub cpus: u32,
    /// The most bandwidth its own admission test lets all reservations together have, others'
    /// included.
    pub admissible: Bandwidth,
    pub shortest_runtime: Span,
    pub shortest_period: Span,
    pub longest_period: Span,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Never touched, or given back.
    Own,
    Held(Reservation),
    /// Another program changed the task since: theirs stays.
    TakenOver,
    Gone,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Speeds {
    pub ladder: Ladder,
    pub present: Speed,
    /// The runtime of a reservation is counted in time at the highest speed: at a lower one the
    /// scheduler itself gives a task as much more. If not, it is counted in plain time.
    pub runtimes_follow_speed: bool,
}

/// Why an actuator did not do what it was asked. Each says what to do next.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, strum::IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum Refusal {
    #[error("no room for {wanted}: {advice}")]
    NoRoom { wanted: Bandwidth, advice: String },
    /// The owner of the task may not have that much.
    #[error("its quota has no room: {advice}")]
    OverQuota {
        /// The reservation that this task can have.
        left: Bandwidth,
        advice: String,
    },
    /// Possible, but not before the given time: the kernel has not let go of earlier bandwidth.
    #[error(
        "the kernel still counts the task's earlier reservation: it can have one a moment later"
    )]
    Settling { until: Instant },
    /// The task may not run on all CPUs that reservations live on.
    #[error("its CPU affinity is narrower than its root domain: {advice}")]
    NarrowAffinity { advice: String },
    #[error("not permitted: {advice}")]
    NotPermitted { advice: String },
    /// An administrator or another program changed the task by hand, and wins.
    #[error("the task or another program changed its scheduling ({now}); onbeat leaves it alone")]
    TakenOver { now: String },
    #[error("the task is gone")]
    Gone,
    #[error("the speed of the CPUs cannot be set here")]
    NoSpeeds,
    /// The task is no ordinary one, or has a share of its own already.
    #[error("only ordinary tasks with a nice value of 0 or below are raised, and it has {now}")]
    NotOrdinary { now: String },
    #[error("it is given no priority: it has one, may take one by itself, or none is given here")]
    NoBoosts,
    #[error("{0}")]
    Other(String),
}

impl Refusal {
    /// The time from which asking again makes sense, if it ever does by itself.
    #[must_use]
    pub const fn retry_at(&self) -> Option<Instant> {
        match self {
            Self::Settling { until } => Some(*until),
            _ => None,
        }
    }
}

pub trait Actuator {
    /// Gives `task` the reservation, or changes the one it has.
    /// Refused, the task then has what it had before.
    fn reserve(&mut self, task: TaskId, reservation: Reservation) -> Result<(), Refusal>;

    /// Whether the owner of `task` may have the reservation for it, whatever room there is.
    fn admits(&self, _task: TaskId, _reservation: Reservation) -> Result<(), Refusal> {
        Ok(())
    }

    /// Gives `task` back exactly what it had before it was first touched. A task that holds nothing
    /// stays as it is.
    fn release(&mut self, task: TaskId) -> Result<(), Refusal>;

    fn standing(&mut self, task: TaskId) -> Standing;

    /// The same of a task that was lately seen to run, which can cost less: that it is stuck need
    /// not be looked for.
    fn standing_of_running(&mut self, task: TaskId) -> Standing {
        self.standing(task)
    }

    /// Makes the reservation of `task`, the one it has and later ones, a ceiling as well, or no
    /// longer. Nothing happens where an actuator knows no difference.
    /// Refused, the reservation is then what it was before.
    fn set_hard(&mut self, _task: TaskId, _is_hard: bool) -> Result<(), Refusal> {
        Ok(())
    }

    fn ended(&mut self, task: TaskId);

    fn capacity(&self) -> Capacity;

    /// Looks whether [there is more or less](Self::capacity) than before: CPUs may have come or
    /// gone.
    fn measure(&mut self) {}

    /// Some of the reserved bandwidth may belong to no task any more: has everything counted anew,
    /// if that is known to help and can be done now. Whether that was done, now or for another
    /// reason since it was last asked.
    fn recount(&mut self) -> bool {
        false
    }

    /// Gives an ordinary `task`, one without a reservation, this boost in place of the one it has;
    /// without one, what it had before its first. A reservation takes a boost's place by itself.
    /// Asking again for what it has notices changes by others.
    /// Refused, the task then has what it had before.
    fn boost(&mut self, _task: TaskId, _boost: Option<Boost>) -> Result<(), Refusal> {
        Err(Refusal::NoBoosts)
    }

    /// The speeds that the CPUs can be given; none if this actuator leaves their speed alone, which
    /// is what it does unless it says otherwise.
    fn speeds(&self) -> Option<Speeds> {
        None
    }

    /// Gives the CPUs on which reservations live the `speed`, one of the ladder's. All of them, for
    /// a reserved task runs on any.
    /// Refused, the CPUs then have the speed that they had before.
    fn set_speed(&mut self, _speed: Speed) -> Result<(), Refusal> {
        Err(Refusal::NoSpeeds)
    }

    /// Gives the CPUs' speed back into the hands that had it before it was first set.
    fn release_speed(&mut self) -> Result<(), Refusal> {
        Ok(())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Boost {
    /// The number of nice levels; each is a factor of 1.25 in the share.
    pub levels: u8,
    /// How long it runs at a time: a thread that runs for shorter gets a CPU sooner, at the same
    /// share.
    #[serde(rename = "slice_ns")]
    pub slice: Span,
    /// The priority of `SCHED_RR`, before all ordinary tasks on any CPU, where the kernel permits
    /// that and no limit of the task's own says how long it may; 0: none. The giver bounds for how
    /// much CPU time.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub priority: u32,
}

impl Boost {
    /// The highest that a boost has: below what most programs that ask for one have.
    pub const HIGHEST_PRIORITY: u32 = 8;
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
const fn is_zero(value: &u32) -> bool {
    *value == 0
}

impl fmt::Display for Boost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.priority > 0 {
            return write!(f, "real-time priority {}", self.priority);
        }
        write!(f, "{} nice levels, slices of {}", self.levels, self.slice)
    }
}
