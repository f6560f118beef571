//! The statements of tasks on their own work: missed deadline notifications, and where jobs begin
//! and end.

use onbeat_model::{Instant, Mark, Said};

use super::Machine;
use super::cpu::Cpu;
use crate::workload::Notifies;
use crate::{CpuIndex, Observer, Policy, TaskIndex, Work};

impl<P: Policy, O: Observer> Machine<P, O> {
    pub(super) fn job_begins(&mut self, task: TaskIndex) {
        let workload = &self.threads[task].workload;
        let Some(permille) = workload.marks() else {
            return;
        };
        if self.threads[task].is_at_first_job()
            && let Some(period) = self.threads[task].workload.period()
        {
            self.say(task, Said::RealTimeStarted { period, permille });
        }
        self.say(task, Said::JobBegan);
    }

    pub(super) fn job_was_done(&mut self, task: TaskIndex, deadline: Instant) {
        if self.threads[task].workload.marks().is_some() {
            self.say(task, Said::JobEnded);
        }
        let notifies = self.threads[task].workload.notifies();
        if notifies == Notifies::WhenLate && self.now() > deadline {
            self.notify(task);
        }
    }

    /// When the CPU that runs `task` and would stop at `stop` stops: earlier if the task notifies
    /// before.
    pub(super) fn stop_or_notification(
        &mut self,
        cpu: CpuIndex,
        task: TaskIndex,
        stop: Instant,
    ) -> Instant {
        let now = self.now();
        let notifies = self.threads[task]
            .until_notification()
            .map(|work| self.cpus[cpu].when_computed(now, work))
            .filter(|&at| at < stop);
        self.cpus[cpu].stops_to_notify = notifies.is_some();
        notifies.unwrap_or(stop)
    }

    /// Returns true if the CPU stopped for that alone.
    pub(super) fn notify_if_due(&mut self, cpu: CpuIndex) -> bool {
        let Some(task) = self.cpus[cpu].task else {
            return false;
        };
        if self.threads[task].until_notification() == Some(Work::ZERO) {
            self.threads[task].computed_since_notification = Work::ZERO;
            self.notify(task);
        }
        std::mem::take(&mut self.cpus[cpu].stops_to_notify)
    }

    /// The job that the CPU was at is done, and its task goes on with the next as if nothing had
    /// happened.
    pub(super) fn runs_on(&self, cpu: CpuIndex) -> bool {
        let Cpu {
            task,
            stops_at_slice_end,
            ..
        } = &self.cpus[cpu];
        task.is_some() && !stops_at_slice_end && !self.policy.knows_jobs()
    }

    fn notify(&mut self, task: TaskIndex) {
        self.policy.notified(task, &mut self.calendar);
        self.say(task, Said::MissedDeadline);
    }

    fn say(&mut self, task: TaskIndex, said: Said) {
        let thread = &self.threads[task];
        let mark = Mark {
            at: self.calendar.now(),
            task: thread.id,
            woke: thread.burst.woke,
            executed: thread.executed,
            said,
        };
        self.observer.marked(&mark);
    }
}
