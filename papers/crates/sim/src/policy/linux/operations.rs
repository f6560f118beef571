//! The scheduler's operations: what each class does when a task wakes, blocks, runs or is picked.

use std::cmp::Reverse;

use onbeat_model::{Instant, Span, Speed};

use super::bandwidth::Active;
use super::deadline::WHOLE;
use super::{
    Class, Config, CpuState, Entity, EntityState, Linux, Order, Rank, Scheduled, deadline, fair,
    fixed,
};
use crate::machine::Calendar;
use crate::policy::{CpuPace, Policy, Slice, at_a_tick};
use crate::{CpuIndex, TaskIndex, Work};

const REPLENISH: u64 = 0;
const ZERO_LAG: u64 = 1;

fn token(task: TaskIndex, what: u64) -> u64 {
    (task as u64) << 1 | what
}

impl Scheduled {
    pub(super) fn new(class: Class, config: &Config) -> Self {
        match class {
            Class::Deadline(deadline) => Self::Deadline(deadline::DeadlineEntity::new(deadline)),
            Class::Fixed(fixed) => Self::Fixed(fixed::FixedEntity::new(fixed, config.round)),
            Class::Fair(fair) => Self::Fair(fair::FairEntity::new(fair)),
        }
    }
}

impl CpuState {
    pub(super) fn in_domain(domain: usize) -> Self {
        Self {
            domain,
            place: 0,
            rank: Rank::Idle,
            task: None,
            fair: fair::FairQueue::default(),
        }
    }
}

impl Linux {
    /// Rings for the CPU of the domain with the least urgent work, if that is less urgent than
    /// `rank`.
    fn preempt(&self, domain: usize, rank: Rank, calendar: &mut Calendar) {
        let domain = &self.domains[domain];
        let (place, Reverse(least_urgent)) = domain.ranks.first();
        if rank < least_urgent {
            calendar.reschedule(domain.cpus[place]);
        }
    }

    fn runs(&mut self, cpu: CpuIndex, task: Option<TaskIndex>, rank: Rank) {
        let CpuState { domain, place, .. } = self.cpus[cpu];
        self.cpus[cpu].task = task;
        self.cpus[cpu].rank = rank;
        self.domains[domain].ranks.set(place, Reverse(rank));
    }

    pub(super) fn place_fair(&mut self, task: TaskIndex, calendar: &mut Calendar) {
        let domain = &self.domains[self.entities[task].domain];
        let Scheduled::Fair(entity) = &mut self.entities[task].class else {
            return;
        };
        let load = |cpu: CpuIndex| {
            let CpuState { rank, fair, .. } = &self.cpus[cpu];
            (*rank != Rank::Idle, fair.count, entity.home != Some(cpu))
        };
        let Some(cpu) = domain.cpus.iter().copied().min_by_key(|&cpu| load(cpu)) else {
            return;
        };
        entity.home = Some(cpu);
        self.cpus[cpu].fair.joins(entity);
        self.cpus[cpu].fair.insert(entity, task);
        self.entities[task].state = EntityState::Queued;
        let preempts = match self.cpus[cpu].rank {
            Rank::Idle => true,
            Rank::Fair => self.cpus[cpu].task.is_some_and(|running| {
                let pair = (&self.entities[task].class, &self.entities[running].class);
                matches!(pair, (Scheduled::Fair(ready), Scheduled::Fair(running))
                    if self.cpus[cpu].fair.preempts(ready, running))
            }),
            _ => false,
        };
        if preempts {
            calendar.reschedule(cpu);
        }
    }

    fn pull_fair(&mut self, cpu: CpuIndex) -> Option<TaskIndex> {
        let domain = &self.domains[self.cpus[cpu].domain];
        let from = domain
            .cpus
            .iter()
            .copied()
            .filter(|&other| other != cpu && !self.cpus[other].fair.is_empty())
            .max_by_key(|&other| self.cpus[other].fair.count)?;
        let task = self.cpus[from].fair.last()?;
        if let Scheduled::Fair(entity) = &mut self.entities[task].class {
            self.cpus[from].fair.remove(entity, task);
            self.cpus[from].fair.leaves(entity);
            entity.home = Some(cpu);
            self.cpus[cpu].fair.joins(entity);
        }
        Some(task)
    }

    fn take(&mut self, cpu: CpuIndex) -> Option<(TaskIndex, Rank)> {
        let domain = &mut self.domains[self.cpus[cpu].domain];
        if let Some(deadline) = domain.deadline.first() {
            return Some((domain.deadline.take_first()?, Rank::Deadline(deadline)));
        }
        if let Some(rank) = domain.fixed.first() {
            return Some((domain.fixed.take_first()?, Rank::Fixed(rank)));
        }
        let own = self.cpus[cpu].fair.take();
        own.or_else(|| self.pull_fair(cpu))
            .map(|task| (task, Rank::Fair))
    }

    /// The rest in the queues may belong on another CPU of the domain.
    fn push(&self, domain: usize, calendar: &mut Calendar) {
        let Some(queues) = self.domains.get(domain).filter(|d| d.cpus.len() > 1) else {
            return;
        };
        if let Some(deadline) = queues.deadline.first() {
            self.preempt(domain, Rank::Deadline(deadline), calendar);
        } else if let Some(rank) = queues.fixed.first() {
            self.preempt(domain, Rank::Fixed(rank), calendar);
        }
    }

    /// A reclaiming task pays another price from now on.
    fn reprice(&self, domain: usize, calendar: &mut Calendar) {
        for &cpu in &self.domains[domain].cpus {
            if matches!(self.cpus[cpu].rank, Rank::Deadline(_)) {
                calendar.reschedule(cpu);
            }
        }
    }

    fn next_tick(&self, at: Instant) -> Instant {
        at_a_tick(at, self.config.tick)
    }
}

impl Policy for Linux {
    fn ready(&mut self, task: TaskIndex, calendar: &mut Calendar) {
        let Entity { domain, class, .. } = &mut self.entities[task];
        let domain = *domain;
        match class {
            Scheduled::Deadline(deadline) => {
                let waits = deadline
                    .server
                    .wake(&deadline.deadline.reservation, calendar.now());
                let contention = &mut self.domains[domain].contention;
                let was_active = deadline.active != Active::No;
                contention.begins(deadline);
                let reprice = contention.matters() && !was_active;
                if let Some(at) = waits {
                    self.entities[task].state = EntityState::Throttled;
                    calendar.set_timer(at, token(task, REPLENISH));
                } else {
                    let rank = Rank::Deadline(deadline.server.deadline());
                    self.enqueue(task, calendar);
                    self.preempt(domain, rank, calendar);
                }
                if reprice {
                    self.reprice(domain, calendar);
                }
            }
            Scheduled::Fixed(fixed) => {
                let rank = Rank::Fixed(fixed.rank());
                self.enqueue(task, calendar);
                self.preempt(domain, rank, calendar);
            }
            Scheduled::Fair(_) => self.place_fair(task, calendar),
        }
    }

    fn blocked(&mut self, task: TaskIndex, cpu: CpuIndex, calendar: &mut Calendar) {
        self.runs(cpu, None, Rank::Idle);
        let entity = &mut self.entities[task];
        entity.state = EntityState::Blocked;
        match &mut entity.class {
            Scheduled::Deadline(deadline) => {
                deadline.leaves_line();
                let contention = &mut self.domains[entity.domain].contention;
                if !contention.matters() {
                    return;
                }
                match contention.ends(deadline, calendar.now()) {
                    Some(at) => calendar.set_timer(at, token(task, ZERO_LAG)),
                    None => self.reprice(self.cpus[cpu].domain, calendar),
                }
            }
            Scheduled::Fixed(_) => {}
            Scheduled::Fair(fair) => self.cpus[cpu].fair.leaves(fair),
        }
    }

    fn put_back(&mut self, task: TaskIndex, cpu: CpuIndex, calendar: &mut Calendar) {
        self.runs(cpu, None, Rank::Idle);
        let entity = &mut self.entities[task];
        match &mut entity.class {
            Scheduled::Deadline(deadline) if deadline.server.throttled() => {
                entity.state = EntityState::Throttled;
                if !deadline.server.yielded() {
                    calendar.tell_exhausted(task);
                }
            }
            Scheduled::Deadline(_) => self.enqueue(task, calendar),
            Scheduled::Fixed(fixed) => {
                self.domains[entity.domain].fixed.put_back(fixed, task);
                entity.state = EntityState::Queued;
            }
            Scheduled::Fair(fair) if fair.home == Some(cpu) => {
                self.cpus[cpu].fair.insert(fair, task);
                entity.state = EntityState::Queued;
            }
            // It ran here in another class until now.
            Scheduled::Fair(_) => self.place_fair(task, calendar),
        }
    }

    fn pick(&mut self, cpu: CpuIndex, calendar: &mut Calendar) -> Option<TaskIndex> {
        let taken = self.take(cpu);
        let domain = self.cpus[cpu].domain;
        let (task, rank) = taken.map_or((None, Rank::Idle), |(task, rank)| (Some(task), rank));
        self.runs(cpu, task, rank);
        if let Some((task, _)) = taken {
            let entity = &mut self.entities[task];
            entity.state = EntityState::Running;
            if let Scheduled::Deadline(deadline) = &mut entity.class {
                deadline.charged_ppb = if deadline.deadline.reclaim {
                    self.domains[domain]
                        .contention
                        .reclaimed_ppb(&deadline.deadline)
                } else {
                    WHOLE
                };
            }
        }
        self.push(domain, calendar);
        taken.map(|(task, _)| task)
    }

    fn slice(&mut self, task: TaskIndex, _cpu: CpuIndex, now: Instant) -> Slice {
        let ends = match &self.entities[task].class {
            Scheduled::Deadline(deadline) if self.config.runtimes_follow_speed => {
                let tick = self.config.tick;
                let left = Work::at_full_speed(deadline.lasts());
                return if tick.is_zero() {
                    Slice {
                        until: None,
                        work: Some(left),
                    }
                } else {
                    let until = self.next_tick(now + Span::from_ns(1));
                    Slice {
                        until: Some(until),
                        work: None,
                    }
                };
            }
            Scheduled::Deadline(deadline) => now + deadline.lasts(),
            Scheduled::Fixed(fixed) if fixed.fixed.order == Order::RoundRobin => now + fixed.turn,
            Scheduled::Fixed(_) => return Slice::default(),
            Scheduled::Fair(fair) => fair::FairQueue::slice_ends(fair, now),
        };
        Slice {
            until: Some(self.next_tick(ends)),
            work: None,
        }
    }

    /// A task that goes on with the next job without having blocked keeps the CPU, and the rest of
    /// its slice.
    fn knows_jobs(&self) -> bool {
        false
    }

    fn pace(&mut self, cpu: CpuIndex, _task: Option<(TaskIndex, Work)>) -> Option<CpuPace> {
        let highest = self.config.grub_pa?;
        let CpuState { rank, domain, .. } = self.cpus[cpu];
        let share = match rank {
            Rank::Deadline(_) | Rank::Idle => self.domains[domain].contention.in_use_of_one(),
            Rank::Fixed(_) | Rank::Fair => 1.0,
        };
        let khz = (highest.as_khz() as f64 * share).ceil() as u64;
        Some(CpuPace {
            speed: Speed::from_khz(khz.max(1))?,
            until: None,
        })
    }

    fn charge(
        &mut self,
        task: TaskIndex,
        cpu: CpuIndex,
        ran: Span,
        work: Work,
        calendar: &mut Calendar,
    ) {
        match &mut self.entities[task].class {
            Scheduled::Deadline(deadline) => {
                let ran = if self.config.runtimes_follow_speed {
                    work.as_span()
                } else {
                    ran
                };
                let used = deadline.charged(ran);
                if deadline.server.throttled() || !deadline.server.charge(used) {
                    return;
                }
                let deadline::DeadlineClass {
                    reservation,
                    overrun,
                    ..
                } = &deadline.deadline;
                if let Some(at) = deadline
                    .server
                    .exhaust(reservation, *overrun, calendar.now())
                {
                    calendar.set_timer(at, token(task, REPLENISH));
                } else {
                    let domain = &mut self.domains[self.cpus[cpu].domain];
                    domain.deadline.line_up(deadline);
                }
                calendar.reschedule(cpu);
            }
            Scheduled::Fixed(fixed) => fixed.charge(ran),
            Scheduled::Fair(fair) => self.cpus[cpu].fair.charge(fair, ran),
        }
    }

    fn yields(&mut self, task: TaskIndex, cpu: CpuIndex, calendar: &mut Calendar) -> bool {
        match &mut self.entities[task].class {
            Scheduled::Deadline(deadline) if !deadline.server.throttled() => {
                let reservation = &deadline.deadline.reservation;
                if let Some(at) = deadline.server.give_up(reservation, calendar.now()) {
                    calendar.set_timer(at, token(task, REPLENISH));
                    return true;
                }
                self.domains[self.cpus[cpu].domain]
                    .deadline
                    .line_up(deadline);
            }
            Scheduled::Deadline(_) => {}
            Scheduled::Fixed(fixed) => fixed.yields = true,
            Scheduled::Fair(fair) => fair.go_behind(),
        }
        false
    }

    fn timer(&mut self, token: u64, calendar: &mut Calendar) {
        let task = (token >> 1) as TaskIndex;
        let now = calendar.now();
        let Some(entity) = self.entities.get_mut(task) else {
            return;
        };
        let domain = entity.domain;
        let Scheduled::Deadline(deadline) = &mut entity.class else {
            return;
        };
        if token & 1 == ZERO_LAG {
            if self.domains[domain].contention.timer(deadline, now) {
                self.reprice(domain, calendar);
            }
            return;
        }
        let replenished = deadline.server.timer(&deadline.deadline.reservation, now);
        if replenished && entity.state == EntityState::Throttled {
            let rank = Rank::Deadline(deadline.server.deadline());
            self.enqueue(task, calendar);
            self.preempt(domain, rank, calendar);
        }
    }
}
