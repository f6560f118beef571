//! The machine: what happens next, and what follows from it.
//!
//! Three things can happen: a CPU comes to the end of what was planned for it (its task blocks, or
//! its slice or its pace ends), a task's timer fires (its next job is released, or a pause in a job
//! is over), or a timer of the policy does. All that happens at one instant is told to the policy,
//! then the CPUs that are to be scheduled anew are.
//!
//! A task that is still busy when its next job is released needs no event: it finds the job
//! waiting, as a program finds its timer expired, and does not block in between. If it sets that
//! timer itself, a burst ends there all the same, as for the live tracer.

mod calendar;
mod cpu;
mod notices;
mod thread;

use onbeat_model::{Instant, Span, Speed, TaskId};

use crate::indexed_min::Least;
use crate::observe::{Completion, Stretch};
use crate::workload::{JobSpec, Workload};
use crate::{CpuIndex, Observer, Policy, TaskIndex, Work};
pub use calendar::Calendar;
use calendar::Timer;
use cpu::Cpu;
pub use cpu::{Costs, CpuAccount, Cpus};
use thread::{RunState, SimulatedThread};

const NEVER: Instant = Instant::from_ns(u64::MAX);

#[derive(Debug)]
pub struct Machine<P, O = ()> {
    calendar: Calendar,
    policy: P,
    observer: O,
    cpus: Vec<Cpu>,
    stops: Least<Instant>,
    threads: Vec<SimulatedThread>,
    jobs_done: u64,
    switches: u64,
}

impl<P: Policy, O: Observer> Machine<P, O> {
    pub fn new(cpus: &Cpus, policy: P, observer: O) -> Self {
        Self {
            calendar: Calendar::new(cpus.count),
            policy,
            observer,
            cpus: (0..cpus.count).map(|_| Cpu::new(cpus)).collect(),
            stops: Least::new(cpus.count, NEVER),
            threads: Vec::new(),
            jobs_done: 0,
            switches: 0,
        }
    }

    /// Adds a task, whose first job is released when `workload` says. The policy must know the task
    /// by the number that this returns.
    pub fn add(&mut self, id: TaskId, workload: Workload) -> TaskIndex {
        let task = self.threads.len();
        self.threads.push(SimulatedThread::new(id, workload));
        self.next_job(task);
        task
    }

    pub const fn now(&self) -> Instant {
        self.calendar.now()
    }

    pub const fn jobs_done(&self) -> u64 {
        self.jobs_done
    }

    pub const fn switches(&self) -> u64 {
        self.switches
    }

    pub const fn policy(&self) -> &P {
        &self.policy
    }

    pub const fn observer(&mut self) -> &mut O {
        &mut self.observer
    }

    pub fn executed(&self, task: TaskIndex) -> Span {
        let charged = self.threads[task].executed;
        match self.threads[task].state {
            RunState::Running(cpu) => {
                charged + self.calendar.now().since(self.cpus[cpu].charged_to)
            }
            _ => charged,
        }
    }

    /// How many jobs of `task` are due and not done. The task can do no more after this: the jobs
    /// that wait behind the present one are drawn from its workload.
    pub fn late(&mut self, task: TaskIndex) -> u64 {
        self.threads[task].late(self.calendar.now())
    }

    pub fn accounts(&mut self) -> impl Iterator<Item = &CpuAccount> {
        self.charge_all();
        self.cpus.iter().map(|cpu| &cpu.account)
    }

    /// Changes something about the tasks as the policy sees them. The time until now is charged
    /// before, and the CPUs that the change concerns are scheduled anew after.
    pub fn change<T>(&mut self, change: impl FnOnce(&mut P, &mut Calendar) -> T) -> T {
        self.charge_all();
        let answer = change(&mut self.policy, &mut self.calendar);
        self.schedule_all();
        answer
    }

    fn charge_all(&mut self) {
        for cpu in 0..self.cpus.len() {
            self.charge(cpu);
        }
    }

    /// Runs until `until`; if `stop` says so after an instant at which something happened, only
    /// until then.
    pub fn run(&mut self, until: Instant, mut stop: impl FnMut(&mut O) -> bool) {
        self.schedule_all();
        while let Some(next) = self.next_event().filter(|&next| next <= until) {
            self.calendar.advance(next);
            while let (cpu, stop) = self.stops.first()
                && stop <= next
            {
                self.stop(cpu);
            }
            while let Some(timer) = self.calendar.due() {
                match timer {
                    Timer::Policy(token) => self.policy.timer(token, &mut self.calendar),
                    Timer::Task(task) => self.wake(task),
                }
            }
            self.schedule_all();
            if stop(&mut self.observer) {
                return;
            }
        }
        self.calendar.advance(until);
    }

    pub fn run_until(&mut self, until: Instant) {
        self.run(until, |_| false);
    }

    fn next_event(&self) -> Option<Instant> {
        let stop = Some(self.stops.first().1).filter(|&stop| stop < NEVER);
        match (stop, self.calendar.next_timer()) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    fn schedule_all(&mut self) {
        while let Some(cpu) = self.calendar.next_to_schedule() {
            self.schedule(cpu);
        }
        while let Some(task) = self.calendar.next_exhausted() {
            let thread = &mut self.threads[task];
            thread.burst.exhausted = true;
            if let Some(job) = &mut thread.job {
                job.exhausted = true;
            }
            self.observer.exhausted(task, self.calendar.now());
        }
    }

    fn stop(&mut self, cpu: CpuIndex) {
        self.charge(cpu);
        if self.notify_if_due(cpu) {
            return self.plan(cpu);
        }
        if let Some(task) = self.cpus[cpu].task
            && let Some(job) = &self.threads[task].job
            && job.burst_left.is_zero()
        {
            self.burst_done(task, cpu);
            if self.runs_on(cpu) {
                return self.plan(cpu);
            }
        }
        self.stops.set(cpu, NEVER);
        self.calendar.reschedule(cpu);
    }

    fn charge(&mut self, cpu: CpuIndex) {
        let now = self.calendar.now();
        let Some((task, ran, work)) = self.cpus[cpu].charge(now) else {
            return;
        };
        self.threads[task].charge(ran, work);
        self.policy.charge(task, cpu, ran, work, &mut self.calendar);
    }

    fn burst_done(&mut self, task: TaskIndex, cpu: CpuIndex) {
        let now = self.calendar.now();
        let thread = &mut self.threads[task];
        if let Some(pause) = thread.pause_in_job() {
            if pause.is_zero() {
                if self.policy.yields(task, cpu, &mut self.calendar) {
                    self.observer.yielded(task, now);
                }
                return self.calendar.reschedule(cpu);
            }
            self.calendar.set_task_timer(now + pause, task);
            self.block(task, cpu, RunState::Blocked);
            return;
        }
        let Some(job) = thread.job.take() else { return };
        self.jobs_done += 1;
        self.policy.job_ends(task, job.demand, &mut self.calendar);
        self.observer.job(&Completion {
            task,
            number: job.number,
            release: job.release,
            started: job.started,
            ended: now,
            deadline: job.deadline,
            demand: job.demand,
            executed: job.executed,
            exhausted: job.exhausted,
        });
        self.job_was_done(task, job.deadline);
        match self.threads[task].workload.next(now) {
            Some(spec) if spec.ready <= now => {
                if spec.expiry.is_some() {
                    let burst = self.threads[task].end_burst(now, spec.expiry);
                    self.observer.burst(&burst);
                }
                self.begin(task, &spec);
            }
            Some(spec) => {
                self.threads[task].next = Some(spec);
                self.calendar.set_task_timer(spec.ready, task);
                self.block(task, cpu, RunState::Blocked);
            }
            None => {
                self.block(task, cpu, RunState::Ended);
                self.policy.exited(task, &mut self.calendar);
                self.observer.exited(task, now);
            }
        }
    }

    fn begin(&mut self, task: TaskIndex, spec: &JobSpec) {
        self.threads[task].begin(spec, self.calendar.now());
        self.policy
            .job_begins(task, spec.release, spec.deadline, &mut self.calendar);
        self.job_begins(task);
    }

    fn block(&mut self, task: TaskIndex, cpu: CpuIndex, state: RunState) {
        let now = self.calendar.now();
        self.end_stretch(cpu);
        self.cpus[cpu].task = None;
        self.policy.blocked(task, cpu, &mut self.calendar);
        let thread = &mut self.threads[task];
        thread.state = state;
        let burst = thread.end_burst(now, None);
        self.observer.burst(&burst);
    }

    fn next_job(&mut self, task: TaskIndex) {
        let now = self.calendar.now();
        if let Some(spec) = self.threads[task].workload.next(now) {
            self.calendar.set_task_timer(spec.ready.max(now), task);
            self.threads[task].next = Some(spec);
        } else {
            self.threads[task].state = RunState::Ended;
        }
    }

    fn wake(&mut self, task: TaskIndex) {
        let now = self.calendar.now();
        let spec = self.threads[task].next.take();
        self.threads[task].wake(now, spec.as_ref().and_then(|spec| spec.expiry));
        if let Some(spec) = &spec {
            self.begin(task, spec);
        }
        self.policy.ready(task, &mut self.calendar);
    }

    fn schedule(&mut self, cpu: CpuIndex) {
        self.charge(cpu);
        let previous = self.cpus[cpu].task;
        if let Some(task) = previous {
            self.policy.put_back(task, cpu, &mut self.calendar);
        }
        let next = self.policy.pick(cpu, &mut self.calendar);
        if next != previous {
            self.switch(cpu, previous, next);
        }
        self.plan(cpu);
    }

    fn switch(&mut self, cpu: CpuIndex, previous: Option<TaskIndex>, next: Option<TaskIndex>) {
        let now = self.calendar.now();
        if let Some(task) = previous {
            self.end_stretch(cpu);
            let thread = &mut self.threads[task];
            thread.state = RunState::Ready;
            thread.burst.preempted = thread.burst.preempted.saturating_add(1);
        }
        self.cpus[cpu].put_on(next, now);
        if let Some(task) = next {
            self.switches += 1;
            self.threads[task].run_on(cpu, now);
        }
    }

    fn plan(&mut self, cpu: CpuIndex) {
        let now = self.calendar.now();
        let task = self.cpus[cpu].task;
        let done = |task: TaskIndex| {
            let job = self.threads[task].job.as_ref();
            job.map_or(Work::ZERO, |job| job.done)
        };
        let pace = self.policy.pace(cpu, task.map(|task| (task, done(task))));
        if let Some(pace) = pace {
            self.change_speed(cpu, pace.speed);
        }
        let Some(task) = task else {
            self.stops.set(cpu, NEVER);
            return;
        };
        let Some(job) = &self.threads[task].job else {
            return;
        };
        let pace_holds = pace
            .and_then(|pace| pace.until)
            .map(|until| until - job.done);
        let slice = self.policy.slice(task, cpu, now);
        let work = [pace_holds, slice.work].into_iter().flatten();
        let work = work.fold(job.burst_left, Work::min);
        let computed = self.cpus[cpu].when_computed(now, work);
        let stop = slice.until.map_or(computed, |until| until.min(computed));
        self.cpus[cpu].stops_at_slice_end = slice.until.is_some_and(|until| until <= stop);
        let stop = self.stop_or_notification(cpu, task, stop);
        self.stops.set(cpu, stop);
    }

    pub fn set_speed(&mut self, speed: Speed) {
        for cpu in 0..self.cpus.len() {
            self.charge(cpu);
            self.change_speed(cpu, speed);
            self.calendar.reschedule(cpu);
        }
        self.schedule_all();
    }

    fn change_speed(&mut self, cpu: CpuIndex, speed: Speed) {
        let speed = self.cpus[cpu].at_least(speed);
        if speed != self.cpus[cpu].speed() {
            self.end_stretch(cpu);
            self.cpus[cpu].change_speed(speed, self.calendar.now());
        }
    }

    fn end_stretch(&mut self, cpu: CpuIndex) {
        let now = self.calendar.now();
        let (task, speed) = (self.cpus[cpu].task, self.cpus[cpu].speed());
        let from = std::mem::replace(&mut self.cpus[cpu].stretch_from, now);
        if let Some(task) = task
            && from < now
        {
            self.observer.ran(&Stretch {
                cpu,
                task,
                from,
                to: now,
                speed,
            });
        }
    }

    pub fn finish(mut self) -> (P, O) {
        for cpu in 0..self.cpus.len() {
            self.charge(cpu);
            self.end_stretch(cpu);
        }
        (self.policy, self.observer)
    }
}
