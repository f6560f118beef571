//! One task at run time: the job it is at, and the burst that it is in.

use onbeat_model::{Burst, Instant, Span, TaskId};

use crate::workload::{JobSpec, Notifies, Workload};
use crate::{CpuIndex, Work};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RunState {
    Blocked,
    Ready,
    Running(CpuIndex),
    Ended,
}

#[derive(Debug)]
pub(super) struct SimulatedJob {
    pub(super) number: u64,
    pub(super) release: Instant,
    pub(super) deadline: Instant,
    pub(super) started: Instant,
    pub(super) demand: Work,
    pub(super) done: Work,
    pub(super) burst_left: Work,
    pub(super) executed: Span,
    pub(super) exhausted: bool,
    has_started: bool,
    left_after_burst: Work,
    bursts_left: u32,
    pause: Span,
}

impl SimulatedJob {
    fn new(number: u64, spec: &JobSpec, now: Instant) -> Self {
        let mut job = Self {
            number,
            release: spec.release,
            deadline: spec.deadline,
            started: now,
            demand: spec.demand,
            done: Work::ZERO,
            burst_left: Work::ZERO,
            executed: Span::ZERO,
            exhausted: false,
            has_started: false,
            left_after_burst: spec.demand,
            bursts_left: spec.bursts,
            pause: spec.pause,
        };
        job.next_burst();
        job
    }

    /// The demand is divided evenly; the last burst has what rounding leaves.
    fn next_burst(&mut self) {
        let left = self.left_after_burst;
        self.burst_left = if self.bursts_left > 1 && left != Work::ENDLESS {
            Work::at_full_speed(left.as_span() / u64::from(self.bursts_left))
        } else {
            left
        };
        self.left_after_burst = left - self.burst_left;
        self.bursts_left = self.bursts_left.saturating_sub(1);
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CurrentBurst {
    pub(super) woke: Instant,
    expiry: Option<Instant>,
    first_ran: Option<Instant>,
    executed: Span,
    pub(super) preempted: u32,
    pub(super) exhausted: bool,
}

#[derive(Debug)]
pub(super) struct SimulatedThread {
    pub(super) id: TaskId,
    pub(super) workload: Workload,
    pub(super) state: RunState,
    pub(super) next: Option<JobSpec>,
    pub(super) job: Option<SimulatedJob>,
    pub(super) executed: Span,
    pub(super) burst: CurrentBurst,
    pub(super) computed_since_notification: Work,
    jobs_begun: u64,
}

impl SimulatedThread {
    pub(super) fn new(id: TaskId, workload: Workload) -> Self {
        Self {
            id,
            workload,
            state: RunState::Blocked,
            next: None,
            job: None,
            executed: Span::ZERO,
            burst: CurrentBurst::default(),
            computed_since_notification: Work::ZERO,
            jobs_begun: 0,
        }
    }

    pub(super) fn begin(&mut self, spec: &JobSpec, now: Instant) {
        self.job = Some(SimulatedJob::new(self.jobs_begun, spec, now));
        self.jobs_begun += 1;
    }

    pub(super) const fn is_at_first_job(&self) -> bool {
        self.jobs_begun == 1
    }

    pub(super) fn charge(&mut self, ran: Span, work: Work) {
        self.executed += ran;
        self.burst.executed += ran;
        self.computed_since_notification += work;
        if let Some(job) = &mut self.job {
            job.executed += ran;
            job.done += work;
            if job.burst_left != Work::ENDLESS {
                job.burst_left = job.burst_left - work;
            }
        }
    }

    /// How much it computes until it notifies, if it does that all the time.
    pub(super) fn until_notification(&self) -> Option<Work> {
        match self.workload.notifies() {
            Notifies::Every(work) => Some(work - self.computed_since_notification),
            Notifies::Never | Notifies::WhenLate => None,
        }
    }

    pub(super) fn wake(&mut self, now: Instant, expiry: Option<Instant>) {
        self.state = RunState::Ready;
        self.burst = CurrentBurst {
            woke: now,
            expiry,
            ..CurrentBurst::default()
        };
    }

    /// The burst that ends now, and how the task goes on if it does not block: its timer had
    /// expired before it was set.
    pub(super) fn end_burst(&mut self, now: Instant, expiry: Option<Instant>) -> Burst {
        let next = CurrentBurst {
            woke: now,
            expiry,
            first_ran: Some(now),
            ..CurrentBurst::default()
        };
        let ended = std::mem::replace(&mut self.burst, next);
        Burst {
            task: self.id,
            woke: ended.woke,
            first_ran: ended.first_ran.unwrap_or(now),
            blocked: now,
            executed: ended.executed,
            preempted: ended.preempted,
            waker: 0,
            exhausted: ended.exhausted,
            expiry: ended.expiry,
        }
    }

    /// How many jobs are due and not done. Those that wait behind the present one are drawn for
    /// this.
    pub(super) fn late(&mut self, now: Instant) -> u64 {
        let Some(job) = &self.job else { return 0 };
        let (mut release, mut due) = (job.release, job.deadline);
        let mut late = 0;
        while release < now && due <= now {
            late += 1;
            let Some(next) = self.workload.next(now) else {
                break;
            };
            (release, due) = (next.release, next.deadline);
        }
        late
    }

    pub(super) fn run_on(&mut self, cpu: CpuIndex, now: Instant) {
        self.state = RunState::Running(cpu);
        self.burst.first_ran.get_or_insert(now);
        if let Some(job) = &mut self.job
            && !std::mem::replace(&mut job.has_started, true)
        {
            job.started = now;
        }
    }

    /// How long the task now waits before the next burst of its job; none if that was the last.
    pub(super) fn pause_in_job(&mut self) -> Option<Span> {
        let job = self.job.as_mut().filter(|job| job.bursts_left > 0)?;
        job.next_burst();
        Some(job.pause)
    }
}
