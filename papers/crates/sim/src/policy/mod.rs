//! The plug for scheduling policies, shaped like the operations of a kernel's scheduler class (and
//! of sched_ext): the machine says what happened, the policy keeps its queues, asks for CPUs to be
//! scheduled anew, and picks.
//!
//! A policy is pure: whole numbers in, whole numbers out, no clock, no failure. The policy itself
//! keeps its data on a task, by the task's number. One that is written in C for sched_ext fits
//! behind the same functions.

pub mod grace;
pub mod linux;
pub mod ruled;

use onbeat_model::{Instant, Span, Speed};

use crate::machine::Calendar;
use crate::{CpuIndex, TaskIndex, Work};

/// How fast a CPU is to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuPace {
    /// The speed. One that the machine does not have is rounded up to one that it has.
    pub speed: Speed,
    /// The policy wants to be asked again when the job has computed this much since its begin.
    pub until: Option<Work>,
}

/// How long a picked task may run before its CPU is scheduled anew: until the earlier of the two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Slice {
    /// Until this time; later than now.
    pub until: Option<Instant>,
    /// Until it has computed so much; more than nothing.
    pub work: Option<Work>,
}

/// When what should end at `at` does where that is looked at only each `tick`; zero: exactly then.
fn at_a_tick(at: Instant, tick: Span) -> Instant {
    match tick.as_ns() {
        0 => at,
        tick => Instant::from_ns(at.as_ns().div_ceil(tick).saturating_mul(tick)),
    }
}

/// Decides which task each CPU runs, for how long, and how fast.
///
/// The machine promises: (1) a task is [`ready`](Self::ready), then picked, and then either
/// [`blocked`](Self::blocked) or [`put_back`](Self::put_back); (2) before any of these, and before
/// [`pick`](Self::pick), the time it ran is [`charged`](Self::charge); (3) all that happens at one
/// instant is told before CPUs are scheduled anew.
pub trait Policy {
    fn ready(&mut self, task: TaskIndex, calendar: &mut Calendar);

    fn blocked(&mut self, task: TaskIndex, cpu: CpuIndex, calendar: &mut Calendar);

    /// `task` still wants to run, but `cpu` is being scheduled anew.
    fn put_back(&mut self, task: TaskIndex, cpu: CpuIndex, calendar: &mut Calendar);

    /// Takes the task that `cpu` is to run out of the queue.
    fn pick(&mut self, cpu: CpuIndex, calendar: &mut Calendar) -> Option<TaskIndex>;

    /// How long `cpu` may run `task`, which it does from now on.
    fn slice(&mut self, _task: TaskIndex, _cpu: CpuIndex, _now: Instant) -> Slice {
        Slice::default()
    }

    /// `task` has run on `cpu` for `ran`, and computed `work` in that time.
    fn charge(
        &mut self,
        task: TaskIndex,
        cpu: CpuIndex,
        ran: Span,
        work: Work,
        calendar: &mut Calendar,
    );

    /// `task`, which runs on `cpu`, calls `sched_yield()`, and `cpu` is scheduled anew. True if it
    /// gave up a budget, and waits for the next.
    fn yields(&mut self, _task: TaskIndex, _cpu: CpuIndex, _desk: &mut Calendar) -> bool {
        false
    }

    /// A timer that the policy set through [`Calendar::set_timer`] fires.
    fn timer(&mut self, _token: u64, _desk: &mut Calendar) {}

    /// Whether a task has to stand in line again when it begins another job without having blocked.
    /// A kernel sees no jobs, so there it runs on.
    fn knows_jobs(&self) -> bool {
        true
    }

    /// A job of `task` begins, released at `release` and due at `deadline`: for policies whose
    /// programs say so.
    fn job_begins(
        &mut self,
        _task: TaskIndex,
        _release: Instant,
        _deadline: Instant,
        _desk: &mut Calendar,
    ) {
    }

    fn job_ends(&mut self, _task: TaskIndex, _demand: Work, _desk: &mut Calendar) {}

    fn exited(&mut self, _task: TaskIndex, _desk: &mut Calendar) {}

    fn notified(&mut self, _task: TaskIndex, _desk: &mut Calendar) {}

    /// How fast `cpu` runs from now on: `task`, whose job has computed `done`, or nothing. None
    /// leaves the speed as it is.
    fn pace(&mut self, _cpu: CpuIndex, _task: Option<(TaskIndex, Work)>) -> Option<CpuPace> {
        None
    }
}
