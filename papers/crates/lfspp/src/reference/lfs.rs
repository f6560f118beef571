//! LFS, the first of the two: a server whose period was chosen beforehand, and a binary variable,
//! looked at once in each of its periods (LFS++, section 2 and Fig. 2).

use onbeat_decide::predictor::Predictor;
use onbeat_model::{Bandwidth, Burst, Demand, Instant, Job, Reservation, Span, TaskId};

use super::Controls;
use crate::predictor::{Binary, BinarySteps};

/// The parameters of LFS. The paper prints none of it but the server periods of Fig. 2.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Lfs {
    /// T^s: the period of the server.
    pub server_period: Span,
    pub first: Bandwidth,
    pub steps: BinarySteps,
}

impl Default for Lfs {
    /// A server of 40 ms, as the task of Fig. 2 has, that begins with a tenth of a CPU.
    fn default() -> Self {
        Self {
            server_period: Span::from_ms(40),
            first: Bandwidth::from_cpus(0.1),
            steps: BinarySteps::default(),
        }
    }
}

pub(super) struct LfsControl {
    period: Span,
    binary: Binary,
    task: TaskId,
    held: Option<Reservation>,
    ran_out: bool,
    next: Instant,
}

impl LfsControl {
    pub(super) fn new(lfs: Lfs, task: TaskId, now: Instant) -> Self {
        let mut new = Self {
            period: lfs.server_period,
            binary: Binary::new(lfs.steps),
            task,
            held: None,
            ran_out: false,
            next: now + lfs.server_period,
        };
        // The binary controller begins at twice its first job.
        new.end_period(lfs.first.runtime_in(lfs.server_period) / 2, now);
        new
    }

    /// The budget was enough for the last period of the server.
    fn end_period(&mut self, executed: Span, now: Instant) {
        let job = Job {
            executed,
            ..Job::of(&Burst::pulse(self.task, now), now, now + self.period)
        };
        self.binary.job(&job, &Demand::new(1));
    }
}

impl Controls for LfsControl {
    fn exhausted(&mut self, _at: Instant, held: Reservation) {
        self.ran_out = true;
        self.held = Some(held);
    }

    fn due(&self) -> Instant {
        self.next
    }

    fn look(&mut self, now: Instant, _executed: Span) {
        if now < self.next {
            return;
        }
        self.next = self.next + self.period;
        match self.held.take() {
            Some(held) if std::mem::take(&mut self.ran_out) => self.binary.exhausted(now, held),
            _ => self.end_period(Span::ZERO, now),
        }
    }

    fn wanted(&self) -> Option<Reservation> {
        let runtime = self.binary.runtime(self.period)?;
        Reservation::implicit(runtime, self.period).ok()
    }
}
