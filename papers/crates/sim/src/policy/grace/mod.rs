//! GRACE-OS (Yuan and Nahrstedt, SOSP 2003) and the schemes it is compared with: earliest deadline
//! first, a budget of work in every period, best effort for tasks that have used it up, and a
//! speed.
//!
//! The rules of a task are those of `schedulers/grace/policy.h`. Here are the queue, one for each
//! CPU, and the profiler: it records what every job demanded, and after a number of jobs gives each
//! task its plan.
//!
//! Assumptions: (1) each task stays on its CPU; (2) a real-time task has one job in each period,
//! due at its end; (3) a task whose demand is not known yet runs in best-effort mode, and until it
//! is, all on its CPU run at full speed: a job that runs slower than that takes time that the other
//! may need.

mod plans;
mod scheme;
mod settings;
mod task;

use std::collections::BTreeSet;

use onbeat_model::{Instant, Ladder, Span, Speed};
use onbeat_policies::grace as rules;

use super::{CpuPace, Policy, Slice};
use crate::machine::Calendar;
use crate::{CpuIndex, TaskIndex, Work};
use plans::KnownDemand;
pub use scheme::Scheme;
use scheme::SchemeSpeeds;
pub use settings::{GraceClass, GraceSettings};
use task::GraceTask;

const ZERO_LAG: u64 = 1 << 62;

#[derive(Debug)]
pub struct Grace {
    settings: GraceSettings,
    speeds: Ladder,
    tasks: Vec<GraceTask>,
    cpus: Vec<GraceCpu>,
}

#[derive(Debug, Default)]
struct GraceCpu {
    queue: BTreeSet<(u64, TaskIndex)>,
    running: Option<TaskIndex>,
    shares: u64,
    /// The demand of a task is not known yet: no other job takes the time that it may need.
    hurries: bool,
}

impl Grace {
    /// A policy for these tasks, each on its CPU. The machine must be given the tasks in the same
    /// order.
    pub fn new(
        settings: GraceSettings,
        speeds: Ladder,
        cpus: usize,
        tasks: impl IntoIterator<Item = (GraceClass, CpuIndex)>,
    ) -> Self {
        let full = speeds.highest();
        let tasks = tasks
            .into_iter()
            .map(|(class, cpu)| {
                GraceTask::new(class, cpu.min(cpus.saturating_sub(1)), &settings, full)
            })
            .collect();
        Self {
            settings,
            speeds,
            tasks,
            cpus: (0..cpus).map(|_| GraceCpu::default()).collect(),
        }
    }

    fn enqueue(&mut self, task: TaskIndex) {
        let entity = &mut self.tasks[task];
        let key = entity.rules.key();
        entity.queued = Some(key);
        self.cpus[entity.cpu].queue.insert((key, task));
    }

    /// Changes what its place in line depends on.
    fn moved(&mut self, task: TaskIndex, change: impl FnOnce(&mut rules::Task)) {
        let entity = &mut self.tasks[task];
        change(&mut entity.rules);
        if let Some(key) = entity.queued {
            self.cpus[entity.cpu].queue.remove(&(key, task));
            self.enqueue(task);
        }
    }

    fn claims(&mut self, task: TaskIndex, now: Instant) {
        let in_use = self.settings.scheme.speeds() == SchemeSpeeds::InUse;
        let share = self.tasks[task].claim(in_use, now);
        let before = std::mem::replace(&mut self.tasks[task].claim.share, share);
        let cpu = &mut self.cpus[self.tasks[task].cpu];
        cpu.shares = cpu.shares - before + share;
    }

    /// New plans for all tasks of `cpu` whose demand is known: the time of each depends on the
    /// others'.
    fn replan(&mut self, cpu: CpuIndex, calendar: &mut Calendar) {
        let settings = &self.settings;
        let known: Vec<KnownDemand> = self
            .tasks
            .iter()
            .enumerate()
            .filter(|(_, task)| task.cpu == cpu && !task.gone && task.jobs >= settings.profile)
            .filter_map(|(number, task)| match task.class {
                GraceClass::RealTime { period, rho } => {
                    let rho = rho.unwrap_or(settings.rho);
                    KnownDemand::of(number, &task.demand, period, rho, settings)
                }
                GraceClass::BestEffort => None,
            })
            .collect();
        let unknown = self.tasks.iter().any(|task| {
            let real_time = task.class != GraceClass::BestEffort;
            task.cpu == cpu && !task.gone && real_time && task.jobs < settings.profile
        });
        self.cpus[cpu].hurries = unknown;
        for (task, plan) in plans::of(&known, settings, &self.speeds) {
            self.tasks[task].rules.set_plan(&plan);
            self.claims(task, calendar.now());
        }
        calendar.reschedule(cpu);
    }

    fn plan_is_due(&self, task: TaskIndex) -> bool {
        let GraceTask { class, jobs, .. } = self.tasks[task];
        let Some(more) = jobs.checked_sub(self.settings.profile) else {
            return false;
        };
        let again = self
            .settings
            .update_every
            .is_some_and(|n| more.is_multiple_of(n.max(1)));
        class != GraceClass::BestEffort && (more == 0 || again)
    }
}

impl Policy for Grace {
    fn ready(&mut self, task: TaskIndex, calendar: &mut Calendar) {
        self.enqueue(task);
        let cpu = self.tasks[task].cpu;
        let key = self.tasks[task].rules.key();
        let running = self.cpus[cpu].running;
        if running.is_none_or(|running| key < self.tasks[running].rules.key()) {
            calendar.reschedule(cpu);
        }
    }

    fn blocked(&mut self, _task: TaskIndex, cpu: CpuIndex, _desk: &mut Calendar) {
        self.cpus[cpu].running = None;
    }

    fn put_back(&mut self, task: TaskIndex, cpu: CpuIndex, calendar: &mut Calendar) {
        self.cpus[cpu].running = None;
        let entity = &mut self.tasks[task];
        if std::mem::take(&mut entity.job.overran) && !entity.rules.is_real_time() {
            calendar.tell_exhausted(task);
        }
        self.enqueue(task);
    }

    fn pick(&mut self, cpu: CpuIndex, _calendar: &mut Calendar) -> Option<TaskIndex> {
        let (_, task) = self.cpus[cpu].queue.pop_first()?;
        self.tasks[task].queued = None;
        self.cpus[cpu].running = Some(task);
        Some(task)
    }

    fn slice(&mut self, task: TaskIndex, _cpu: CpuIndex, now: Instant) -> Slice {
        let entity = &self.tasks[task];
        let tick = self.settings.tick.as_ns();
        let looked_at = (tick > 0).then(|| {
            let next = (now.as_ns() / tick + 1).saturating_mul(tick);
            Instant::from_ns(next)
        });
        let turn = (!entity.rules.is_real_time())
            .then(|| now + Span::from_ns(entity.rules.turn_left_ns()));
        Slice {
            until: [looked_at, turn].into_iter().flatten().min(),
            work: None,
        }
    }

    fn charge(
        &mut self,
        task: TaskIndex,
        cpu: CpuIndex,
        ran: Span,
        work: Work,
        calendar: &mut Calendar,
    ) {
        let entity = &mut self.tasks[task];
        let now_ns = calendar.now().as_ns();
        if !entity.rules.is_real_time() {
            entity.rules.takes_turn(ran.as_ns(), now_ns);
        }
        if entity.rules.charge(work.as_span().as_ns(), now_ns) {
            entity.job.overran = true;
            calendar.reschedule(cpu);
        }
    }

    fn timer(&mut self, token: u64, calendar: &mut Calendar) {
        let task = (token & !ZERO_LAG) as TaskIndex;
        if token & ZERO_LAG != 0 {
            self.claims(task, calendar.now());
            calendar.reschedule(self.tasks[task].cpu);
            return;
        }
        let entity = &self.tasks[task];
        let now_ns = calendar.now().as_ns();
        if !entity.job.under_way || now_ns < entity.rules.period_end_ns() {
            return;
        }
        self.moved(task, |rules| rules.period_ends(now_ns));
        let entity = &self.tasks[task];
        calendar.set_timer(Instant::from_ns(entity.rules.period_end_ns()), token);
        calendar.reschedule(entity.cpu);
    }

    fn job_begins(
        &mut self,
        task: TaskIndex,
        release: Instant,
        _deadline: Instant,
        calendar: &mut Calendar,
    ) {
        let entity = &mut self.tasks[task];
        let before = entity.rules.period_end_ns();
        entity.rules.job_begins(release.as_ns());
        entity.job.under_way = true;
        let period_end_ns = entity.rules.period_end_ns();
        if entity.class != GraceClass::BestEffort && (period_end_ns > before || before == 0) {
            calendar.set_timer(Instant::from_ns(period_end_ns), task as u64);
        }
        self.claims(task, calendar.now());
    }

    fn job_ends(&mut self, task: TaskIndex, demand: Work, calendar: &mut Calendar) {
        let entity = &mut self.tasks[task];
        entity.job.under_way = false;
        entity.job.overran = false;
        entity.rules.job_ends();
        entity.job.demand_ns = demand.as_span().as_ns();
        entity.demand.record(demand.as_span());
        entity.jobs += 1;
        let cpu = entity.cpu;
        entity.find_zero_lag();
        if self.settings.scheme.speeds() == SchemeSpeeds::InUse
            && entity.claim.zero_lag > calendar.now()
        {
            calendar.set_timer(entity.claim.zero_lag, task as u64 | ZERO_LAG);
        }
        self.claims(task, calendar.now());
        if self.plan_is_due(task) {
            self.replan(cpu, calendar);
        }
    }

    fn exited(&mut self, task: TaskIndex, calendar: &mut Calendar) {
        self.tasks[task].gone = true;
        self.claims(task, calendar.now());
        self.replan(self.tasks[task].cpu, calendar);
    }

    fn pace(&mut self, cpu: CpuIndex, task: Option<(TaskIndex, Work)>) -> Option<CpuPace> {
        let (task, _) = task?;
        let GraceTask { rules, class, .. } = &self.tasks[task];
        if *class == GraceClass::BestEffort {
            return None;
        }
        let hurries = self.cpus[cpu]
            .hurries
            .then_some(self.speeds.highest().as_khz());
        let (khz, until) = match hurries.or_else(|| rules.speed()) {
            Some(khz) => (khz, rules.until()),
            None => {
                let kept = (self.settings.best_effort * rules::WHOLE as f64).ceil() as u64;
                let shares = self.cpus[cpu].shares + kept;
                let full = self.speeds.highest().as_khz();
                (rules::speed_of(shares, full), rules.until())
            }
        };
        let until = until.filter(|_| self.settings.tick.is_zero());
        Some(CpuPace {
            speed: Speed::from_khz(khz)?,
            until: until.map(|more| Work::at_full_speed(Span::from_ns(rules.done() + more))),
        })
    }
}

#[cfg(test)]
mod tests;
